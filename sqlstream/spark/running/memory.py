"""Reads the table of a memory sink, during the run and at its end."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql.functions import desc, monotonically_increasing_id, row_number

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import PLAN
from sqlstream.spark.reading.rows import all_rows, columns_of, first_rows
from sqlstream.spark.reading.sources import quoted
from sqlstream.spark.reading.static_stream import key_columns
from sqlstream.spark.running.prepare import PreparedQuery
from sqlstream.spark.running.start import query_name
from sqlstream.state.preview import ShownRows
from sqlstream.state.runs.events import TableShown

MEMORY = "memory"
"""The format of memory sinks."""


def memory_table(query: PreparedQuery, limit: int | None) -> TableShown | None:
    """Returns the first `limit` rows (None: all) of the table of `query`, with its number of rows; None if Spark does
    not have the table, or no longer.

    Spark's table has the rows of all batches. This returns only the newest row of each key, if the key is known.
    """
    try:
        table = _newest_rows(query.frame.sparkSession.table(query_name(query)), _keys(query))
        rows = all_rows(table) if limit is None else first_rows(table, limit)
        count = len(rows) if limit is None else table.count()
    except SPARK_ERRORS:
        return None  # an error here must not lose the results of the run
    return TableShown(query.model.name, tuple(table.columns), rows, count)


def live_table(query: PreparedQuery, limit: int) -> tuple[ShownRows, int] | None:
    """Returns the same rows in the form of `show`, and the number of rows of the table."""
    table = memory_table(query, limit)
    if table is None:
        return None
    model = query.model
    return ShownRows(model.name, model.unique_id, columns_of(query.frame), table.rows, limit), table.count


def _keys(query: PreparedQuery) -> tuple[str, ...]:
    """Returns the columns that identify a row of a stream: `unique_key`, or in update mode those that its aggregation
    groups by. Returns none if they are unknown, and in complete mode.
    """
    config = query.model.config
    if not query.model.streaming or config.output_mode == "complete":
        return ()
    if config.unique_key or config.output_mode == "append":
        return config.unique_key
    return call_internal(query.frame.sparkSession, PLAN, lambda: key_columns(query.frame), tuple)


def _newest_rows(table: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Returns the last row of `table` for each key, in the order of the table; all rows without keys."""
    if not keys:
        return table
    order = "_sqlstream_order"  # the rows of the table are in the order of the batches
    numbered = table.withColumn(order, monotonically_increasing_id())
    last = Window.partitionBy(*map(quoted, keys)).orderBy(desc(order))
    newest = numbered.withColumn("_sqlstream_row", row_number().over(last)).where("_sqlstream_row = 1")
    return newest.sort(order).select(*map(quoted, table.columns))
