"""Where the state of a new query is kept: in RocksDB if it never shrinks, and where its checkpoint has it afterwards."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from pyspark import SparkContext

from sqlstream import ProjectRequest
from sqlstream.app.state.rows import show_state
from sqlstream.spark.jvm.state_store import PROVIDER, ROCKSDB
from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.testing.session_settings import IN_MEMORY
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows

SUMS = """{{ config(sink='nowhere', output_mode='update') }}
select kind, sum(amount) as amount from {{ source('shop', 'orders') }} group by kind"""
HOURS = """{{ config(sink='nowhere', output_mode='update') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, count(*) as n from {{ source('shop', 'orders') }}
group by window(ts, '1 hour')"""
FEW = f"-- sqlstream: allow unbounded-state because there are three kinds\n{SUMS}"


def target(**spark: str) -> str:
    """Returns the project with settings of Spark."""
    return PROJECT.replace("storage: store", f"storage: store, spark: {json.dumps(spark)}")


def stores(folder: ProjectFolder, query: str, batch: int = 0) -> str:
    """Returns the state store with which Spark ran a batch, by its own record."""
    offsets = folder.root / f"store/queries/{query}/v1/checkpoint/offsets/{batch}"
    conf: dict[str, str] = json.loads(offsets.read_text().splitlines()[1])["conf"]
    return conf[PROVIDER].rpartition(".")[2]


def files_of_state(folder: ProjectFolder, query: str) -> set[tuple[str, str]]:
    """Returns the version and the kind of each file of the state."""
    state = Path(folder.root / f"store/queries/{query}/v1/checkpoint/state/0")
    return {(path.stem, path.suffix) for path in state.glob("*/*.*") if path.suffix != ".crc"}


@pytest.mark.slow
def test_state_that_never_shrinks_is_in_rocksdb(orders: ProjectFolder) -> None:
    """A new query gets RocksDB if its state never shrinks, unless a comment says that it stays small."""
    orders.write({"models/sums.sql": SUMS, "models/hours.sql": HOURS, "models/few.sql": FEW})

    orders.run()

    found = {query: stores(orders, query) for query in ("sums", "hours", "few")}
    assert found == {
        "sums": "RocksDBStateStoreProvider",
        "hours": "HDFSBackedStateStoreProvider",
        "few": "HDFSBackedStateStoreProvider",
    }
    for query in ("sums", "few"):
        (shown,) = show_state(ProjectRequest(orders.root, env=os.environ), query, limit=10).stores
        assert sorted(row[:2] for row in shown.rows) == [("a", 12), ("b", 8)]


@pytest.mark.slow
def test_a_run_leaves_no_state_store_open(orders: ProjectFolder) -> None:
    """A JVM that ends while RocksDB compacts files can hang."""
    orders.write({"models/sums.sql": SUMS})
    assert orders.result().status == "success"

    stores = getattr(SparkContext._jvm, "org.apache.spark.sql.execution.streaming.state.StateStore")
    assert not stores.isMaintenanceRunning()


@pytest.mark.slow
def test_a_checkpoint_keeps_its_state_store(orders: ProjectFolder) -> None:
    """The setting of the target decides for a new checkpoint. That stays where it is when the setting is removed."""
    orders.write({"models/sums.sql": SUMS, "project.yml": target(**{PROVIDER: IN_MEMORY})})
    orders.result()
    orders.write({"project.yml": PROJECT})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    result = orders.result()

    assert (result.status, result.finding) == ("success", None)
    assert {stores(orders, "sums", int(batch)) for batch in orders.committed("sums")} == {
        "HDFSBackedStateStoreProvider"
    }
    orders.write({"models/hours.sql": HOURS, "project.yml": target(**{PROVIDER: ROCKSDB})})
    orders.run("hours")
    assert stores(orders, "hours") == "RocksDBStateStoreProvider"


@pytest.mark.slow
def test_a_run_that_ends_leaves_a_snapshot_of_each_batch(orders: ProjectFolder) -> None:
    """An endless run writes the changes of each batch, one that ends snapshots, and both continue the other's state."""
    endless = SUMS.replace("output_mode", "trigger='1 second', output_mode")
    orders.write({"models/sums.sql": endless})

    def is_done(events: list[RunEvent]) -> bool:
        return sum(isinstance(event, BatchProgress) for event in events) >= 2

    orders.run_until(is_done)
    after_endless = files_of_state(orders, "sums")
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.write({"models/sums.sql": SUMS})
    orders.run()
    after_finite = files_of_state(orders, "sums") - after_endless
    orders.rows("in/orders/3.json", order_rows(3), modified=3)
    orders.write({"models/sums.sql": endless})
    orders.run_until(lambda events: any(isinstance(event, BatchProgress) for event in events))

    assert after_endless == {("1", ".changelog"), ("2", ".changelog")}
    assert after_finite == {("3", ".zip")}
    last = [event for event in orders.events if isinstance(event, BatchProgress)][-1]
    assert last.state is not None
    assert (last.batch_id, last.state.in_rocksdb) == (3, True)
