"""Compacts a table of Delta Lake or Iceberg, and removes what no reader and no query needs any more.

Both formats change a table in commits, so readers are not disturbed while old files exist. A query finds in the table
which of its batches it has written: Delta Lake keeps that in its log, Iceberg only in snapshots.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql.functions import max as max_

from sqlstream.compiler.sql.sql_text import quote_identifier, quote_text
from sqlstream.numbers import count_text, plural
from sqlstream.spark.jvm.cluster import parallelism
from sqlstream.spark.writing.table_formats.table import FormatTable, current_snapshots, query_of_snapshot

ICEBERG_RETAINED_SECONDS = 5 * 86400.0
"""How old a snapshot of Iceberg must be to expire: Iceberg's own default."""

DELTA_RETAINED_SECONDS = 7 * 86400.0
"""The shortest time for which VACUUM keeps unused files: Delta Lake's default, and the limit of its safety check."""

GONE_SECONDS = 30 * 86400.0
"""A query that has no checkpoint here, and has written nothing for this time, does not hold back snapshots any more. It
may be one of another target or of another program, which can be down for a while.
"""

LISTING_TASKS = 32
"""The tasks in which VACUUM lists files, on a few cores."""

_LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


@dataclass(frozen=True)
class TableSize:
    """The files with rows in the current version of a table, and their size in bytes."""

    files: int
    bytes: int


def table_size(table: FormatTable) -> TableSize:
    """Returns the size of a table, which exists. Raises: Spark's errors."""
    if table.format == "delta":
        (row,) = table.session.sql(f"DESCRIBE DETAIL {table.name}").select("numFiles", "sizeInBytes").collect()
    else:
        files = table.session.table(f"{table.name}.files")
        (row,) = files.selectExpr("count(*)", "coalesce(sum(file_size_in_bytes), 0)").collect()
    return TableSize(int(row[0]), int(row[1]))


def maintain_table(table: FormatTable, retain_seconds: float | None, queries: Collection[str]) -> Iterator[str]:
    """Compacts a table, which exists, and removes files and snapshots that are older than `retain_seconds` (None: the
    default of its format). `queries` are Spark's ids of the queries that have a checkpoint. Yields what each step did.
    Raises: Spark's errors.
    """
    if table.format == "delta":
        return _maintain_delta(table, retain_seconds)
    return _maintain_iceberg(table, retain_seconds, queries)


def _maintain_delta(table: FormatTable, retain_seconds: float | None) -> Iterator[str]:
    (row,) = table.session.sql(f"OPTIMIZE {table.name}").select("metrics").collect()
    metrics = row["metrics"]
    removed = metrics["numFilesRemoved"]
    yield f"OPTIMIZE merged {plural(removed, 'file')} into {count_text(metrics['numFilesAdded'])}"
    is_safe = retain_seconds is not None and retain_seconds >= DELTA_RETAINED_SECONDS
    retain = f" RETAIN {math.ceil((retain_seconds or 0) / 3600)} HOURS" if is_safe else ""
    if retain_seconds is not None and not is_safe:
        yield "VACUUM uses the retention of the table, because less than 7 days can disturb readers"
    with _few_tasks(table.session):
        table.session.sql(f"VACUUM {table.name}{retain}")
    (last,) = table.session.sql(f"DESCRIBE HISTORY {table.name} LIMIT 1").collect()
    removed = (last["operationMetrics"] or {}).get("numDeletedFiles") if last["operation"] == "VACUUM END" else None
    yield f"VACUUM removed {'unused files' if removed is None else plural(int(removed), 'unused file')}"


@contextmanager
def _few_tasks(session: SparkSession) -> Iterator[None]:
    """Has VACUUM list the files in a few tasks for each core. By default it starts 10,000, most of them without work,
    which takes ten minutes on two cores.
    """
    before = session.conf.get(_LISTING_TASKS)
    tasks = min(int(before or LISTING_TASKS), max(LISTING_TASKS, 2 * parallelism(session)))
    session.conf.set(_LISTING_TASKS, str(tasks))
    try:
        yield
    finally:
        session.conf.set(_LISTING_TASKS, str(before))


def _maintain_iceberg(table: FormatTable, retain_seconds: float | None, queries: Collection[str]) -> Iterator[str]:
    session, catalog = table.session, _catalog(table)
    name = f"table => {quote_text(table.name)}"
    options = "map('min-input-files', '2')"
    (done,) = session.sql(f"CALL {catalog}.system.rewrite_data_files({name}, options => {options})").collect()
    merged, added = done["rewritten_data_files_count"], done["added_data_files_count"]
    yield f"rewrite_data_files merged {plural(merged, 'file')} into {count_text(added)}"
    (done,) = session.sql(f"CALL {catalog}.system.rewrite_manifests({name})").collect()
    manifests = done["rewritten_manifests_count"]
    yield f"rewrite_manifests merged {plural(manifests, 'manifest')} into {count_text(done['added_manifests_count'])}"
    retained = ICEBERG_RETAINED_SECONDS if retain_seconds is None else retain_seconds
    now = time.time()
    wanted = int((now - retained) * 1000)
    times = _last_batch_times(table)
    gone = {query for query, at in times.items() if query not in queries and at < (now - GONE_SECONDS) * 1000}
    oldest = min([wanted, *(at for query, at in times.items() if query not in gone)])
    before = session.table(f"{table.name}.snapshots").count()
    call = f"CALL {catalog}.system.expire_snapshots({name}, older_than => timestamp_millis({oldest}))"
    session.sql(call).collect()
    expired = before - session.table(f"{table.name}.snapshots").count()
    yield f"expire_snapshots removed {plural(expired, 'snapshot')}"
    if oldest < wanted:
        yield "snapshots since the last batch of each query stay: they say which batches the table has"
    if gone:
        number = plural(len(gone), "query", "queries")
        yield f"the snapshots of {number} without a checkpoint do not count: the last batch is older than 30 days"


def _catalog(table: FormatTable) -> str:
    """Returns the catalog of an Iceberg table."""
    first = table.name.split(".")[0].strip("`")
    is_catalog = table.session.conf.get(f"spark.sql.catalog.{first}", None) is not None
    return quote_identifier(first if is_catalog else table.session.catalog.currentCatalog())


def _last_batch_times(table: FormatTable) -> dict[str, int]:
    """Returns, by the id of each query that has written to an Iceberg table, when it committed its last batch (ms since
    1970).

    Of these snapshots and of all later ones none may expire: Iceberg's streaming writer follows them from the current
    one back to that of its query, and writes a batch again if it finds none.
    """
    snapshots = current_snapshots(table.session, table.name)
    written = snapshots.withColumn("query", query_of_snapshot()).where("query IS NOT NULL")
    last = written.groupBy("query").agg(max_("committed_at").alias("at"))
    return {str(row[0]): int(row[1]) for row in last.selectExpr("query", "unix_millis(at)").collect()}
