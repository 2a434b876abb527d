"""Commits of tables that record the query and the batch, so that a repeated batch changes nothing."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import coalesce, col
from pyspark.sql.functions import max as max_

from sqlstream.project.files.paths import escaped
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import MicroBatch
from sqlstream.spark.writing.table_formats.table import DELTA_LOG, FormatTable

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


_SPARK_QUERY = "spark.sql.streaming.queryId"
"""The property for the query in snapshots of Iceberg's own streaming writer."""


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
    batches = _summaries(session, table).where(col("summary")[QUERY] == query_id)
    (found,) = batches.select(col("summary")[BATCH].cast("bigint").alias("id")).agg(max_("id")).collect()
    return -1 if found[0] is None else int(found[0])


def _summaries(session: SparkSession, table: str) -> DataFrame:
    """Returns the `summary` of each snapshot in the history of an Iceberg table."""
    current = session.table(f"{table}.history").where("is_current_ancestor").select("snapshot_id")
    return session.table(f"{table}.snapshots").join(current, "snapshot_id").select("summary")


def queries_in(table: FormatTable) -> list[str]:
    """Returns Spark's ids of the streaming queries that have written batches to a table, which exists.

    Delta Lake keeps them in its log, Iceberg as long as their snapshots exist. Raises: Spark's errors, OSError.
    """
    if table.format == "delta":
        return _delta_queries(table)
    query_id = coalesce(col("summary")[QUERY], col("summary")[_SPARK_QUERY]).alias("id")
    rows = _summaries(table.session, table.name).select(query_id).distinct().collect()
    return sorted(str(row["id"]) for row in rows if row["id"] is not None)


def _delta_queries(table: FormatTable) -> list[str]:
    """Reads the transactions in the last checkpoint of the log and in the commits after it, as
    https://github.com/delta-io/delta/blob/master/PROTOCOL.md describes them.
    """
    session = table.session
    place = table.path or str(session.sql(f"DESCRIBE DETAIL {table.name}").collect()[0]["location"])
    files, log = storage_for(f"{place}/{DELTA_LOG}", session)
    last = int(json.loads(files.read_text(f"{log}/_last_checkpoint") or "{}").get("version", -1))
    names, checkpoint = files.names(log), f"{last:020d}.checkpoint."
    texts = [name for name in names if _COMMIT.fullmatch(name) and int(name[:20]) > last]
    texts += [name for name in names if name.startswith(checkpoint) and name.endswith(".json")]
    lines = [line for name in texts for line in (files.read_text(f"{log}/{name}") or "").splitlines()]
    actions = (json.loads(line) for line in lines if '"txn"' in line)
    found = {str(action["txn"]["appId"]) for action in actions if "txn" in action}
    parts = [name for name in names if name.startswith(checkpoint) and name.endswith(".parquet")]
    if parts:
        paths = [escaped(f"{place}/{DELTA_LOG}/{name}") for name in parts]
        rows = session.read.schema("txn struct<appId: string>").parquet(*paths).where("txn is not null")
        found |= {str(row["txn"]["appId"]) for row in rows.collect()}
    return sorted(found)


_COMMIT = re.compile(r"\d{20}\.json")
"""The name of a commit in the log of a Delta table."""
