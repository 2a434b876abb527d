"""The state of a query grows for ever exactly where `unbounded-state` warns."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.hourly import MARKED, ORDERS, compile_orders, run_orders

HOURS = 6
JOIN = f"select a.id from {MARKED} a join {MARKED} b on a.id = b.id"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mode", "sql", "kept"),
    [
        ("update", f"select id, count(*) as n from {ORDERS} group by id", HOURS),
        ("update", f"select distinct id from {ORDERS}", HOURS),
        ("update", f"select id, ts, count(*) as n from {MARKED} group by id, ts", 1),
        ("append", JOIN, 2 * HOURS),
        ("append", f"{JOIN} and a.ts >= b.ts - interval 1 minute", HOURS + 1),
        ("append", f"{JOIN} and a.ts between b.ts - interval 1 minute and b.ts", 2),
        ("append", f"{JOIN} and a.ts = b.ts", 2),
    ],
)
def test_state_grows_where_the_rule_says_so(
    spark: SparkSession, tmp_path: Path, mode: str, sql: str, kept: int
) -> None:
    """With one row an hour, each with a different id, `kept` rows are in the state at the end."""
    compiled = compile_orders(tmp_path, mode, sql)

    query = run_orders(spark, tmp_path, compiled.model, [f"2024-01-01T0{hour}:30:00" for hour in range(HOURS)], "grown")

    assert query.lastProgress is not None
    assert sum(int(operator["numRowsTotal"]) for operator in query.lastProgress["stateOperators"]) == kept
    assert ("unbounded-state" in compiled.codes) is (kept >= HOURS)
