"""Quarantines in tables of Delta Lake and Iceberg."""

from __future__ import annotations

import pytest

from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, forget_last_commit, lake_session, rows
from tests.support.violations import order

pytestmark = pytest.mark.smoke

MODEL = (
    "{{ config(sink='FORMAT', quarantine_sink='FORMAT') }} select id, kind, amount from {{ source('shop', 'orders') }}"
)
TESTS = "models: [{name: orders, columns: [{name: kind, data_tests: [{not_null: {on_violation: %s}}]}]}]"


@pytest.mark.parametrize("form", FORMATS)
def test_a_table_ignores_a_batch_that_it_has(folder: ProjectFolder, form: str) -> None:
    """A query that the writer of the format began gets a quarantine: each row is in one of the tables, once."""
    folder.write(
        {"sinks.yml": SINKS, "models/orders.sql": MODEL.replace("FORMAT", form), "models/orders.yml": TESTS % "drop"}
    )
    folder.rows("in/orders/0.json", [order(1, "a", 1), order(2, None, 2)], modified=0)
    assert folder.result().finding is None

    folder.write({"models/orders.yml": TESTS % "quarantine"})
    folder.rows("in/orders/1.json", [order(3, "a", 3), order(4, None, 4)], modified=1)
    assert folder.result().finding is None
    for _ in range(2):
        (folder.root / "store/queries/orders/v1/checkpoint/commits/1").unlink()
        assert folder.result().batches == 1

    with lake_session(folder) as session:
        assert rows(session, folder, form, "orders", "id") == [(1,), (3,)]
        found = rows(session, folder, form, "orders__quarantine", "id", "_query", "_batch", "_errors.name")
    assert found == [(4, "orders", 1, ["not_null_orders_kind"])]


@pytest.mark.parametrize("form", FORMATS)
def test_rows_are_released_from_a_table(folder: ProjectFolder, form: str) -> None:
    """Released rows are in the table of the model once, also if the release is interrupted after its commit."""
    folder.write(
        {
            "sinks.yml": SINKS,
            "models/orders.sql": MODEL.replace("FORMAT", form),
            "models/orders.yml": TESTS % "quarantine",
        }
    )
    folder.rows("in/orders/0.json", [order(1, "a", 1), order(2, None, 2), order(3, None, 3)], modified=0)
    assert folder.result().finding is None

    release = ("quarantine", "release", "orders")
    done = folder.invoke(*release, "--where", "id = 2", "--set", "kind='b'")
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "batch 1: 1 row"
    forget_last_commit(folder, "orders")
    done = folder.invoke(*release)
    assert (done.code, done.out.splitlines()[0]) == (0, "batch 1, which was interrupted: 1 row"), done.err
    folder.rows("in/orders/1.json", [order(4, "a", 4)], modified=1)
    assert folder.result().batches == 1

    with lake_session(folder) as session:
        assert rows(session, folder, form, "orders", "id", "kind") == [(1, "a"), (2, "b"), (4, "a")]
    assert "1 row in quarantine, and 1 released" in folder.invoke("quarantine", "show", "orders").out
