"""Python models: DataFrames of their inputs, errors on their own lines, and state with timers across a restart."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from sqlstream.state.runs.events import Status
from tests.spark.conftest import ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

LARGE = """def model(sqlstream, spark):
    sqlstream.config(sink="lake")
    orders = sqlstream.source("shop", "orders").where(f"amount >= {sqlstream.var('least', 2)}")
    kinds = sqlstream.ref("kinds")
    return orders.join(kinds, "kind").select("id", "name")
"""

ACTIVITY = '''from collections.abc import Iterator

from pyspark.sql import Row
from pyspark.sql.streaming import StatefulProcessor


class LastSeen(StatefulProcessor):
    """Gives a row for a kind when no order of it has come for ten minutes of event time."""

    def init(self, handle):
        self.handle = handle
        self.seen = handle.getValueState("seen", "last long, count int")

    def handleInputRows(self, key, rows, timerValues) -> Iterator[Row]:
        last, count = self.seen.get() if self.seen.exists() else (0, 0)
        for row in rows:
            last = max(last, row.at)
            count += 1
        self.seen.update((last, count))
        for timer in list(self.handle.listTimers()):
            self.handle.deleteTimer(timer)
        self.handle.registerTimer(last + 600_000)
        return iter(())

    def handleExpiredTimer(self, key, timerValues, expiredTimerInfo) -> Iterator[Row]:
        last, count = self.seen.get()
        self.seen.clear()
        yield Row(kind=key[0], last=last, count=count)


def model(sqlstream, spark):
    sqlstream.config(sink="lake", output_mode="append")
    return (
        sqlstream.ref("timed")
        .groupBy("kind")
        .transformWithState(LastSeen(), "kind string, last long, count int", "append", "EventTime")
    )
'''
TIMED = "select /*+ WATERMARK(ts, '1 minute') */ kind, ts, unix_millis(ts) as at from {{ source('shop', 'orders') }}"


@pytest.mark.smoke
def test_a_python_model_runs_and_resumes_like_any_other(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A Python model reads a source and a seed, another model reads it, and no row is read twice."""
    orders.write(
        {
            "seeds/kinds.csv": "kind,name\na,Apples\nb,Berries\n",
            "models/large.py": LARGE,
            "models/names.sql": "{{ config(sink='lake') }} select upper(name) as name from {{ ref('large') }}",
        }
    )
    assert [result.rows_out for result in orders.run().results] == [6, 6]
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    assert [result.rows_out for result in orders.run().results] == [3, 3]

    assert len(read_parquet(orders.root / "store/large")) == 9
    assert {row["name"] for row in read_parquet(orders.root / "store/names")} == {"APPLES", "BERRIES"}
    assert (orders.root / "target/compiled/shop/models/large.py").read_text() == LARGE


@pytest.mark.slow
def test_each_reference_has_a_reader_of_its_own(orders: ProjectFolder) -> None:
    """In a self-join each reference has its own reader, so Spark can tell their columns apart."""
    orders.write(
        {
            "models/pairs.py": """def model(sqlstream, spark):
    sqlstream.config(sink="lake")
    one, other = sqlstream.source("shop", "orders"), sqlstream.source("shop", "orders")
    return one.alias("a").join(other.alias("b"), "id").selectExpr("id", "a.kind as kind")
"""
        }
    )
    assert orders.result().rows_out == 10
    assert orders.result().rows_out == 0


@pytest.mark.slow
def test_state_with_timers_survives_a_restart(folder: ProjectFolder, read_parquet: Rows) -> None:
    """State with timers survives a restart; only this query uses RocksDB, and a changed module that the model imports
    changes the query.
    """
    pytest.importorskip("google.protobuf", reason="Spark sends state to Python in its messages")
    folder.write(
        {
            "models/timed.sql": TIMED,
            "models/activity.py": "from waits import wait\n" + ACTIVITY.replace("600_000", "wait()"),
            "python/waits.py": "def wait():\n    return 600_000\n",
            "models/plain.sql": "{{ config(sink='nowhere') }} select * from {{ ref('timed') }}",
        }
    )
    folder.rows("in/orders/0.json", order_rows(0, 4), modified=0)
    folder.run()
    assert read_parquet(folder.root / "store/activity") == []

    folder.rows("in/orders/1.json", [{"id": 9, "ts": "2024-01-01T00:30:00Z", "kind": "b", "amount": 0}], modified=1)
    outcome = folder.run()
    assert [result.status for result in outcome.results] == [Status.SUCCESS, Status.SUCCESS]
    given = {
        row["kind"]: (row["last"] // 60_000 % 60, row["count"]) for row in read_parquet(folder.root / "store/activity")
    }
    assert given == {"a": (2, 2)}  # an order of `b` has put its timer off
    ledgers = [(folder.root / f"store/queries/{name}/v1/ledger.json").read_text() for name in ("activity", "plain")]
    assert ["RocksDB" in ledger for ledger in ledgers] == [True, False]

    folder.write({"python/waits.py": "def wait():\n    return 900_000\n"})
    with pytest.raises(FindingsError) as caught:
        folder.run()
    (finding,) = caught.value.findings
    assert finding.code == "state-change"
    assert "that `activity` imports" in finding.message


@pytest.mark.parametrize(
    ("body", "line", "word"),
    [
        ("raise KeyError('nothing')", 3, "KeyError"),
        ("return [row for row in ()]", 1, "returns list"),
        ("sqlstream.source('shop', 'orders')\n    return helper(spark)", 8, "ZeroDivisionError"),
        ("return sqlstream.source('shop', 'orders').select('missing')", 3, "UNRESOLVED_COLUMN"),
        ("return spark.readStream.format('rate').load()", 3, "Spark reports"),
    ],
)
def test_an_error_has_the_line_of_the_model(orders: ProjectFolder, body: str, line: int, word: str) -> None:
    """An error points to the last line of the model's file, with the message of Python or Spark and no traceback."""
    text = f"def model(sqlstream, spark):\n    sqlstream.config(sink='nowhere')\n    {body}\n\ndef helper(spark):\n    x = 1\n"
    orders.write({"models/broken.py": f"{text}    return x / 0\n"})
    with pytest.raises(FindingsError) as caught:
        orders.run()
    (finding,) = caught.value.findings
    assert finding.code == "python-failed"
    assert finding.location is not None
    assert (finding.location.path, finding.location.line) == ("models/broken.py", line)
    assert word in finding.why
