"""The version bounds of the most important dependencies."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-spark41.lock"])
@pytest.mark.parametrize("name", ["pyspark", "sqlglot"])
def test_the_upper_bound_is_the_major_release_after_the_locked_one(name: str, lock: str) -> None:
    """The upper bound allows later minor releases and excludes the next major release, which no test has covered."""
    required = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    bound = next(found for item in required if (found := re.match(rf"{name}(\[c\])?>=[\d.]+,<(\d+)$", item)))
    locked = re.search(rf"^{name}==(\d+)\.", (ROOT / lock).read_text(), re.MULTILINE)

    assert locked is not None
    assert int(bound[2]) == int(locked[1]) + 1
