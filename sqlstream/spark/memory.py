"""The table that a memory sink filled, for people to read when the run has ended."""

from __future__ import annotations

from sqlstream.spark.jvm import SPARK_ERRORS
from sqlstream.spark.prepare import PreparedQuery
from sqlstream.spark.rows import first_rows
from sqlstream.spark.start import query_name
from sqlstream.state.events import TableShown

SHOWN_ROWS = 20
"""Rows shown of a memory sink's table, as Spark's own show() does."""


def memory_table(query: PreparedQuery) -> TableShown | None:
    """Returns the first rows of the table of `query`, and how many it has; None where Spark has it no more."""
    try:
        table = query.frame.sparkSession.table(query_name(query))
        rows = first_rows(table, SHOWN_ROWS)
        count = table.count()
    except SPARK_ERRORS:
        return None  # the run has its results, and they must still be written
    return TableShown(query.model.name, tuple(table.columns), rows, count)
