"""Reads the table of a memory sink, during the run and at its end."""

from __future__ import annotations

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.rows import all_rows, columns_of, first_rows
from sqlstream.spark.running.prepare import PreparedQuery
from sqlstream.spark.running.start import query_name
from sqlstream.state.results.rows import ShownRows
from sqlstream.state.runs.events import TableShown

MEMORY = "memory"
"""The format of memory sinks."""


def memory_table(query: PreparedQuery, limit: int | None) -> TableShown | None:
    """Returns the first `limit` rows (None: all) of the table of `query`, with its number of rows; None if Spark does
    not have the table, or no longer.
    """
    try:
        table = query.frame.sparkSession.table(query_name(query))
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
