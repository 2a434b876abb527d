"""The path to which version 1 writes once readers see another version under the plain name."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sqlstream.state.ledger import SinkUse
from sqlstream.state.query_versions import with_new_names
from tests.support.identities import STATEFUL, ledger_of


@pytest.mark.parametrize(
    ("declared", "place", "new"),
    [
        ("lake/orders", "/data/lake/orders", "/data/lake/orders.v1"),
        ("file:/lake/orders/", "file:/lake/orders", "file:/lake/orders.v1"),
        ("gold.orders", "gold.orders", "gold.orders_v1"),
        ("lake/orders", "/data/lake/orders.v1", "/data/lake/orders.v1"),  # it has run since
        ("lake/orders.v1", "/data/lake/orders.v1", "/data/lake/orders.v1.v1"),
    ],
)
def test_the_ledger_of_version_1_gets_the_new_name(declared: str, place: str, new: str) -> None:
    """Its query may not have run since, so its ledger has the plain name."""
    ledger = replace(ledger_of(replace(STATEFUL, sink_path=declared)), output=place)
    assert with_new_names(ledger, (declared,)).output == new
    assert with_new_names(ledger, ("other",)) == ledger


def test_each_sink_of_a_query_has_its_own_name() -> None:
    """With `fan_out: shared`, some outputs may keep their names."""
    identity = replace(STATEFUL, sink_path="a", also=(SinkUse("b", "parquet", "b"), SinkUse("c", "console", None)))
    ledger = replace(ledger_of(identity), output="/data/a", also=("/data/b", None))
    moved = with_new_names(ledger, ("b",))
    assert (moved.output, moved.also) == ("/data/a", ("/data/b.v1", None))
