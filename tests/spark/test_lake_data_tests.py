"""`sqlstream test --data` on tables of Delta Lake and Iceberg."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS
from tests.support.violations import order

MODEL = "{{ config(sink='FORMAT') }} select id, kind, amount from {{ source('shop', 'orders') }}"
TESTS = """models:
  - name: orders
    columns:
      - {name: id, data_tests: [unique, not_null]}
      - {name: kind, data_tests: [not_null: {config: {severity: warn}}]}
    data_tests: [expression_is_true: {name: positive, expression: amount > 0, config: {store_failures: true}}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_a_lakehouse_table_are_tested(folder: ProjectFolder, form: str) -> None:
    """The rows of all batches are tested; failures are stored, and `retry` checks the failed tests again."""
    folder.write({"sinks.yml": SINKS, "models/orders.sql": MODEL.replace("FORMAT", form), "models/orders.yml": TESTS})
    for number, rows in enumerate([[order(1, "a", 1), order(2, None, 2)], [order(1, "b", -1)]]):
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
        assert folder.result().finding is None

    done = folder.invoke("test", "--data", "--output", "json")
    results = {each["name"]: each for each in json.loads(done.out)["results"]}
    assert {name: (each["status"], each["failures"]) for name, each in results.items()} == {
        "unique_orders_id": ("fail", 1),
        "not_null_orders_id": ("pass", 0),
        "not_null_orders_kind": ("warn", 1),
        "positive": ("fail", 1),
    }
    assert [row["kind"] for row in pq.read_table(folder.root / results["positive"]["stored_in"]).to_pylist()] == ["b"]
    done = folder.invoke("retry")
    assert (done.code, done.out.splitlines()[-1]) == (1, "Done. PASS=0 WARN=0 ERROR=2 SKIP=0 TOTAL=2")
