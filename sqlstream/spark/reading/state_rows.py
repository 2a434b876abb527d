"""Reads the state of a query with Spark's data sources `state-metadata` and `statestore`.

See "State Data Source Integration Guide" of Spark's documentation.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, count

from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.state.shown_rows import ShownRows
from sqlstream.state.stored_state import PartitionSize, StateStore


@contextmanager
def readable_checkpoint(checkpoint: str) -> Iterator[str]:
    """Yields a path at which `read_store` finds the checkpoint: a link, if a local path has special characters.

    Spark's `statestore` encodes the path twice (tested on 4.3), so it finds nothing below a name with a space.
    """
    if not checkpoint.startswith("/") or quote(checkpoint) == checkpoint:
        yield checkpoint
        return
    with tempfile.TemporaryDirectory(prefix="sqlstream-") as folder:
        link = Path(folder) / "checkpoint"
        link.symlink_to(checkpoint)
        yield str(link)


def stores_of(session: SparkSession, checkpoint: str) -> tuple[StateStore, ...]:
    """Returns the state stores of a checkpoint, in the order of their operators. A join has several. Raises: Spark's
    errors.
    """
    found = session.read.format("state-metadata").load(checkpoint)
    rows = (
        found.select("operatorId", "operatorName", "stateStoreName").orderBy("operatorId", "stateStoreName").collect()
    )
    return tuple(StateStore(int(row[0]), str(row[1]), str(row[2])) for row in dict.fromkeys(map(tuple, rows)))


REPORTS_SNAPSHOTS = "spark.sql.streaming.stateStore.coordinatorReportSnapshotUploadLag"
"""With this setting, a state store in RocksDB reports its snapshots to the coordinator of state stores. Spark 4.1 also
does so when it only reads one, and fails if no query has run, because then there is no coordinator.
"""


def read_store(session: SparkSession, checkpoint: str, store: StateStore) -> DataFrame:
    """Returns the rows of a store after the last committed batch: `key`, `value` and `partition_id`."""
    session.conf.set(REPORTS_SNAPSHOTS, "false")
    reader = session.read.format("statestore").option("operatorId", store.operator)
    return reader.option("storeName", store.name).load(checkpoint)


def show_store(
    session: SparkSession, checkpoint: str, store: StateStore, condition: str | None, limit: int
) -> ShownRows:
    """Returns the first rows of a store. `condition` is a condition in SQL on the fields of the key. Raises: Spark's
    errors.
    """
    frame = read_store(session, checkpoint, store)
    flat = frame.select("key.*", *_values(frame))
    if condition is not None:
        flat = frame.select("key.*", "key", "value", "partition_id").where(condition)
        flat = flat.select("key.*", *_values(frame))
    return ShownRows(store.title, "", columns_of(flat), first_rows(flat, limit), limit)


def _values(frame: DataFrame) -> Iterator[str]:
    """Yields the columns beside the key: the fields of the value, if it has a name that no field of the key has."""
    keys = set(frame.select("key.*").columns)
    values = frame.select("value.*").columns
    yield "value" if keys & set(values) else "value.*"
    yield "partition_id"


def partition_sizes(session: SparkSession, checkpoint: str, store: StateStore) -> tuple[PartitionSize, ...]:
    """Returns the number of rows in each partition of a store that has any. Raises: Spark's errors."""
    frame = read_store(session, checkpoint, store).groupBy("partition_id").agg(count("*")).orderBy(col("partition_id"))
    return tuple(PartitionSize(int(row[0]), int(row[1])) for row in frame.collect())
