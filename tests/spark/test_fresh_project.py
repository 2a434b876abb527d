"""A new project from `sqlstream init` runs without changes."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.init import init_project
from sqlstream.state.runs.events import Status, TableShown
from tests.spark.conftest import ProjectFolder


def test_a_new_project_runs_and_shows_rows(
    tmp_path: Path, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """All queries end without --available-now: one shows rows, one writes closed windows, and one running totals."""
    fresh = ProjectFolder(init_project("my-shop", tmp_path).root)

    outcome = fresh.run(available_now=False)

    assert outcome.succeeded
    assert outcome.warnings == ()
    results = {result.model: result for result in outcome.results}
    assert {name: result.status for name, result in results.items()} == {
        "large_orders": Status.SUCCESS,
        "orders_per_minute": Status.SUCCESS,
        "revenue_per_product": Status.SUCCESS,
    }
    with sqlite3.connect(fresh.root / ".sqlstream/local/revenue_per_product.sqlite") as connection:
        totals = connection.execute("select product, orders, revenue from revenue_per_product order by 1").fetchall()
    assert ("table", 2, 378) in totals
    assert (results["large_orders"].rows_in, results["large_orders"].rows_out) == (14, 4)
    (shown,) = [event for event in fresh.events if isinstance(event, TableShown)]
    assert sorted(int(str(row[0])) for row in shown.rows) == [1, 3, 7, 11]
    rows = read_parquet(fresh.root / ".sqlstream/local/orders_per_minute")
    assert results["orders_per_minute"].rows_out == len(rows) == 8
    assert sum(row["orders"] for row in rows) == 11


@pytest.mark.slow
def test_a_second_run_writes_no_row_twice(tmp_path: Path, read_parquet: Callable[[Path], list[dict[str, Any]]]) -> None:
    """A second run works as the scaffold's README says: old output stays the same, and the new line is read."""
    fresh = ProjectFolder(init_project("shop", tmp_path).root)
    fresh.run(available_now=False)
    (command,) = [line for line in (fresh.root / "README.md").read_text().splitlines() if line.startswith("    echo ")]
    _, line, to = command.split("'")
    (fresh.root / to.removeprefix(" > ")).write_text(line + "\n")

    results = {result.model: result for result in fresh.run(available_now=False).results}

    assert (results["large_orders"].rows_in, results["large_orders"].rows_out) == (15, 5)
    assert (results["orders_per_minute"].rows_in, results["orders_per_minute"].rows_out) == (1, 2)
    rows = read_parquet(fresh.root / ".sqlstream/local/orders_per_minute")
    assert len({(row["minute"], row["shop"]) for row in rows}) == len(rows) == 10
