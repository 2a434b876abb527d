"""Commits of tables that record the query and the batch, so that a repeated batch changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.functions import col
from pyspark.sql.functions import max as max_

from sqlstream.spark.writing.micro_batches import MicroBatch

_DELTA = {"spark.databricks.delta.write.txnAppId": "query_id", "spark.databricks.delta.write.txnVersion": "id"}
"""Delta writes these into the commit of a MERGE, and ignores a MERGE with a version that it has seen already
(https://docs.delta.io/latest/delta-streaming.html#idempotent-table-writes-in-foreachbatch).
"""

QUERY, BATCH = "sqlstream.query-id", "sqlstream.batch-id"
"""The properties of an Iceberg snapshot that say which batch it is."""

_ICEBERG = {
    f"spark.sql.iceberg.snapshot-property.{QUERY}": "query_id",
    f"spark.sql.iceberg.snapshot-property.{BATCH}": "id",
}


@contextmanager
def committing(session: SparkSession, format_name: str, batch: MicroBatch) -> Iterator[None]:
    """Makes the commits of `session` inside the block record `batch`."""
    settings: Mapping[str, str] = _DELTA if format_name == "delta" else _ICEBERG
    try:
        for name, attribute in settings.items():
            session.conf.set(name, str(getattr(batch, attribute)))
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def last_batch(session: SparkSession, table: str, query_id: str) -> int:
    """Returns the last batch of a query that an Iceberg table has, -1 without one. Raises: Spark's errors.

    Ignores snapshots that a rollback has removed from the table's history.
    """
    current = session.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id")
    summary = session.table(f"{table}.snapshots").join(current, "snapshot_id").select("summary")
    batches = summary.where(col("summary")[QUERY] == query_id).select(col("summary")[BATCH].cast("bigint").alias("id"))
    (found,) = batches.agg(max_("id")).collect()
    return -1 if found[0] is None else int(found[0])
