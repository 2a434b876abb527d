"""The table that a memory sink fills, for people to read while the run lasts and when it has ended."""

from __future__ import annotations

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.rows import all_rows, columns_of, first_rows
from sqlstream.spark.running.prepare import PreparedQuery
from sqlstream.spark.running.start import query_name
from sqlstream.state.results.rows import ShownRows
from sqlstream.state.runs.events import TableShown

MEMORY = "memory"
"""The format of these sinks."""


def memory_table(query: PreparedQuery, limit: int | None) -> TableShown | None:
    """Returns the first `limit` rows of the table of `query` (None: all), and how many it has; None where Spark has no
    such table, or no longer.
    """
    try:
        table = query.frame.sparkSession.table(query_name(query))
        rows = all_rows(table) if limit is None else first_rows(table, limit)
        count = len(rows) if limit is None else table.count()
    except SPARK_ERRORS:
        return None  # the run has its results, and they must still be written
    return TableShown(query.model.name, tuple(table.columns), rows, count)


def live_table(query: PreparedQuery, limit: int) -> tuple[ShownRows, int] | None:
    """Returns the same as `show` shows it, and how many rows the table has."""
    table = memory_table(query, limit)
    if table is None:
        return None
    model = query.model
    return ShownRows(model.name, model.unique_id, columns_of(query.frame), table.rows, limit), table.count
