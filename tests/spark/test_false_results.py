"""Queries that Spark runs with wrong rows or none: the compiler's warnings describe what really happens."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hourly import MARKED, ORDERS, compile_orders, run_orders


@pytest.mark.slow
def test_an_aggregation_of_changing_groups_counts_them_again(spark: SparkSession, tmp_path: Path) -> None:
    """An aggregation of changing groups counts them again: the outer sum adds both 1 and 2 of the same inner group."""
    inner = f"select window(ts, '1 hour') as w, count(*) as n from {MARKED} group by 1"
    compiled = compile_orders(
        tmp_path,
        "update",
        f"with a as ({inner}) select window(window_time(w), '2 hours') as v, sum(n) as n from a group by 1",
    )

    run_orders(spark, tmp_path, compiled.model, ["2024-01-01T00:10:00", "2024-01-01T00:20:00"], "counted_again")

    assert [row.n for row in spark.table("counted_again").collect()][-1] == 3
    assert "several-aggregations" in compiled.codes


@pytest.mark.slow
def test_grouping_sets_without_the_event_time_never_come_out(spark: SparkSession, tmp_path: Path) -> None:
    """Grouping sets without the event time never come out, although the watermark is hours past every window."""
    compiled = compile_orders(
        tmp_path,
        "append",
        f"select window, id, count(*) as n from {MARKED} group by rollup(window(ts, '10 minutes'), id)",
    )

    run_orders(spark, tmp_path, compiled.model, [f"2024-01-01T0{hour}:10:00" for hour in range(4)], "rolled_up")

    rows = spark.table("rolled_up").collect()
    assert len(rows) == 6  # for each of the three closed windows its id, and the sum over its ids
    assert not [row for row in rows if row.window is None]
    assert "set-without-time" in compiled.codes


def test_rows_beside_an_aggregation_appear_only_once(spark: SparkSession, tmp_path: Path) -> None:
    """In complete mode the last result has the whole count, but of the rows beside it only those of the last batch."""
    compiled = compile_orders(
        tmp_path,
        "complete",
        f"select 'all' as kind, count(*) as n from {ORDERS} union all select 'one', 1 from {ORDERS}",
    )

    run_orders(spark, tmp_path, compiled.model, [f"2024-01-01T0{hour}:10:00" for hour in range(3)], "beside")

    assert sorted((row.kind, row.n) for row in spark.table("beside").collect()) == [("all", 3), ("one", 1)]
    assert "rows-beside-aggregation" in compiled.codes
