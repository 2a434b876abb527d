"""The guarantees of sinks."""

from __future__ import annotations

import pytest

from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.formats.guarantees import AT_LEAST_ONCE, EXACTLY_ONCE, UNKNOWN, guarantee_of, modes_of


@pytest.mark.parametrize("name", [entry.name for entry in FORMATS.values() if entry.writes and entry.name != "libsvm"])
def test_every_sink_has_a_guarantee(name: str) -> None:
    """Each mode in which a query can write to a known format has an entry."""
    assert modes_of(name)
    unknown = [mode for mode in modes_of(name) if guarantee_of(name, mode).rows == UNKNOWN]
    assert unknown == (["append", "update", "complete"] if name == "table" else [])


def test_the_guarantee_depends_on_the_mode() -> None:
    """Files cannot be updated, and an unknown format promises nothing."""
    assert modes_of("parquet") == ("append", "complete", "batch")
    assert guarantee_of("kafka", "append").rows == AT_LEAST_ONCE
    assert guarantee_of("sqlite", "update").rows == EXACTLY_ONCE
    assert guarantee_of("com.example.sink", "append").rows == UNKNOWN
