"""The first rows of what can only stream, taken by a query that ends within seconds and leaves nothing behind."""

from __future__ import annotations

import tempfile
import time

from pyspark.sql import DataFrame

from sqlstream.spark.reading.sources import quoted

SAMPLE_SECONDS = 10.0
"""How long rows are waited for after the first look: a source that sends one a second gives ten, a silent one none."""

LOOK_SECONDS = 0.2
"""How often it is looked whether there are enough."""

MOST_ROWS = 1_000
"""Rows kept unless more are wanted: a source that sends a million a second must not fill the memory."""


def take_sample(stream: DataFrame, name: str, wanted: int) -> DataFrame:
    """Returns the first rows of `stream` as the static table `name` of its session.

    It is read until there are `wanted` rows, or for `SAMPLE_SECONDS`, by a query with a temporary checkpoint.
    Raises: Spark's errors.
    """
    session = stream.sparkSession
    writer = stream.limit(max(wanted, MOST_ROWS)).writeStream.format("memory").queryName(name)
    with tempfile.TemporaryDirectory(prefix="sqlstream-sample-", ignore_cleanup_errors=True) as checkpoint:
        query = writer.option("checkpointLocation", checkpoint).start()
        try:
            began: float | None = None
            while len(session.table(name).take(wanted)) < wanted:
                if query.awaitTermination(LOOK_SECONDS):  # type: ignore[arg-type] # parts of a second, too
                    break
                if began is None and query.lastProgress is not None:
                    began = time.monotonic()
                if began is not None and time.monotonic() - began > SAMPLE_SECONDS:
                    break
        finally:
            query.stop()
    rows = session.table(name)
    # a memory table joined with itself cannot be told apart by Spark, its columns under new ids can
    return rows.select(*(rows[quoted(column)].alias(column) for column in rows.columns))
