"""Applies the data tests of a model to its rows: counts violations, leaves rows out or marks them, and fails the
query.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql.functions import (
    array,
    array_compact,
    array_contains,
    arrays_overlap,
    col,
    concat,
    count,
    count_if,
    expr,
    lit,
    raise_error,
    struct,
    to_json,
    when,
)

from sqlstream.compiler.origins import ORIGIN
from sqlstream.compiler.rewrite.data_tests import ERRORS, kept_rows, passes, written
from sqlstream.compiler.sql.sql_text import quote_identifier
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
    """Returns the rows of `frame` without those that a test leaves out. With a `counter`, Spark counts the rows, and
    the violations of each test under its name. A job on the rows fails at one that violates a test with `fail`.
    """
    kept, shown = kept_rows(tests), _shown(frame)
    is_kept = expr(" and ".join(kept) if kept else "true")
    violated = {test.name: ~expr(passes(test)) for test in tests}
    failures = {test.name: _failure(violated[test.name] & is_kept, model, test, shown) for test in _failing(tests)}
    frame = _counted(frame, counter, violated, failures)
    for condition in kept:
        frame = frame.filter(condition)
    return frame if counter is not None else _failing_at(frame, failures)


def marked_rows(
    frame: DataFrame, model: str, tests: tuple[DataTest, ...], counter: str | Observation | None
) -> DataFrame:
    """Returns the rows of `frame` without those that a test drops, but with those to quarantine. These have the tests
    that they violate in the column `ERRORS`, which is null for the other rows. Counts and fails as `tested_rows` does.
    """
    is_bad = reduce(or_, (~expr(passes(test)) for test in tests))
    errors = array_compact(array(*(when(~expr(passes(test)), _error(test)) for test in tests)))
    # each condition is computed once for a row that passes all: the others depend on the column
    marked = frame.select("*", when(is_bad, errors).alias(ERRORS))
    names = col(ERRORS).getField("name")
    violated = {test.name: array_contains(names, test.name) for test in tests}
    left_out = array(*(lit(test.name) for test in tests if test.leaves_out))
    shown, is_kept = _shown(frame), ~arrays_overlap(names, left_out.cast("array<string>"))
    failures = {test.name: _failure(violated[test.name] & is_kept, model, test, shown) for test in _failing(tests)}
    marked = _counted(marked, counter, violated, failures)
    quarantined = [test.name for test in tests if test.action == "quarantine"]
    if len(quarantined) < len(tests):
        is_quarantined = arrays_overlap(names, array(*map(lit, quarantined)))
        marked = marked.withColumn(ERRORS, when(is_quarantined, col(ERRORS)))
    dropped = [passes(test) for test in tests if test.action == "drop"]
    if dropped:
        marked = marked.filter(col(ERRORS).isNotNull() | expr(" and ".join(dropped)))
    return marked if counter is not None else _failing_at(marked, failures)


def violations(frame: DataFrame, tests: tuple[DataTest, ...], test: DataTest, most: int) -> tuple[int, tuple[str, ...]]:
    """Returns how many rows of `frame` end the query because they violate `test`, and up to `most` of them, as JSON.
    Runs two jobs. Raises: Spark's errors.
    """
    for condition in kept_rows(tests):
        frame = frame.filter(condition)
    bad = frame.filter(~expr(passes(test)))
    return bad.count(), tuple(row[0] for row in bad.select(to_json(struct("*"))).head(most))


def _error(test: DataTest) -> Column:
    """Returns the test that a row violates, as an item of `ERRORS`."""
    columns = array(*map(lit, [test.column] if test.column else [])).cast("array<string>")
    message = test.document.description or " ".join(written(test).split())
    return struct(lit(test.name).alias("name"), lit(message).alias("message"), columns.alias("columns"))


def _counted(
    frame: DataFrame,
    counter: str | Observation | None,
    violations: Mapping[str, Column],
    failures: Mapping[str, Column],
) -> DataFrame:
    """Returns `frame`, whose rows Spark counts, and those that violate each test, by its name. The `failures` end a job
    while it counts: Spark moves no condition past that, so the query also fails at a row that a downstream model leaves
    out.
    """
    if counter is None:
        return frame
    violations = {**violations, **{name: violations[name] & failure.isNull() for name, failure in failures.items()}}
    counts = [count_if(is_violated).alias(name) for name, is_violated in violations.items()]
    return frame.observe(counter, count(lit(1)).alias(TESTED_ROWS), *counts)


def _failing_at(frame: DataFrame, failures: Mapping[str, Column]) -> DataFrame:
    """Returns `frame`, on which the `failures` end a job, unless the query leaves out the row."""
    for failure in failures.values():
        frame = frame.filter(is_good(failure))
    return frame


def _shown(frame: DataFrame) -> Column:
    """Returns a row of `frame` as JSON, for messages."""
    return to_json(struct(*(quote_identifier(name, always=True) for name in frame.columns if name != ORIGIN)))


def _failing(tests: tuple[DataTest, ...]) -> list[DataTest]:
    return [test for test in tests if test.action == "fail"]


def _failure(is_wrong: Column, model: str, test: DataTest, shown: Column) -> Column:
    """Returns null. At a wrong row it fails, with an error that has the violated `test`, and the row as `shown`."""
    place = test.location
    known = (VIOLATED, model, test.name, place.path, str(place.line), str(place.column), "")
    text = concat(lit("\n".join(known)), shown)
    return when(is_wrong, raise_error(text).cast("string"))
