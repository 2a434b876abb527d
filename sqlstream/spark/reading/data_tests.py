"""Applies the data tests of a model to its rows: counts violations, drops rows, and fails the query."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import concat, count, count_if, expr, lit, raise_error, struct, to_json, when

from sqlstream.compiler.rewrite.data_tests import kept_rows, passes
from sqlstream.project.configuration.data_tests import DataTest
from sqlstream.spark.reading.corrupt import is_good
from sqlstream.state.runs.progress import TESTED_ROWS

VIOLATED = "sqlstream data test:"
"""The start of the error that a query raises at a row that violates a test. Lines with the names of the model and of
the test, the path, line and column of the test, and the row as JSON follow.
"""


def tested_rows(
    frame: DataFrame, model: str, tests: tuple[DataTest, ...], counter: str | Observation | None
) -> DataFrame:
    """Returns the rows of `frame` without those that a test drops. With a `counter`, Spark counts the rows, and the
    violations of each test under its name. A job on the rows fails at one that violates a test with `fail`.
    """
    if counter is not None:
        counts = [count_if(~expr(passes(test))).alias(test.name) for test in tests]
        frame = frame.observe(counter, count(lit(1)).alias(TESTED_ROWS), *counts)
    for condition in kept_rows(tests):
        frame = frame.filter(condition)
    for test in (test for test in tests if test.action == "fail"):
        frame = frame.filter(is_good(_failing(model, test)))
    return frame


def _failing(model: str, test: DataTest) -> Column:
    """Returns null for a row that passes `test`; for others the query fails."""
    place = test.location
    known = (VIOLATED, model, test.name, place.path, str(place.line), str(place.column), "")
    text = concat(lit("\n".join(known)), to_json(struct("*")))
    return when(~expr(passes(test)), raise_error(text).cast("string"))
