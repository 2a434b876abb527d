"""Checks data tests on stored rows: counts the failures of all tests together, and finds those of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array, array_compact, coalesce, col, count, count_if, explode, expr, lit, struct, when
from pyspark.sql.types import DataType

from sqlstream.compiler.rewrite.data_tests import passes
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.configuration.data_tests import DataTest
from sqlstream.project.databases.row_history import IS_CURRENT

Tables = Mapping[str, DataFrame]
"""The rows of the other tables that a test reads, by the names of their views."""

_NAME = "sqlstream: {} {}"
"""A column beside those of a model, which no model can have."""

_COUNT = "sqlstream: rows"

ROWS = "n_records"
"""The column of the number of rows with the same values, as in dbt's test `unique`."""


@dataclass(frozen=True)
class TestedRows:
    """The stored rows of the model `name`, and the other tables that its tests read, by the names of the tests.

    With `has_history`, `rows` have the column `is_current`, and only such rows must be unique.
    """

    rows: DataFrame
    name: str
    tables: Mapping[str, Tables]
    has_history: bool = False


def count_failures(tested: TestedRows, tests: Sequence[DataTest]) -> dict[str, int]:
    """Returns the number of failures of each test by its name: rows, or of tests for unique values, as in dbt, the
    values that several rows have. Reads the rows once for the tests of rows, once for those of unique values, and once
    for each generic test that is more than a condition.

    Raises: Spark's errors, for the first test that Spark cannot evaluate.
    """
    rows, history = tested.rows, tested.has_history
    failures: dict[str, int] = {}
    checked, conditions = rows, {}
    for at, test in enumerate(tests):
        if _is_query(test):
            failures[test.name] = _rows_of_query(tested, test).count()
        elif test.parent is not None:
            checked, conditions[test.name] = _with_parent(checked, test, tested, at)
        elif not test.keys:
            conditions[test.name] = ~expr(passes(test))
    if conditions:
        numbered = [count_if(condition).alias(str(at)) for at, condition in enumerate(conditions.values())]
        failures.update(zip(conditions, checked.agg(*numbered).collect()[0], strict=True))
    unique = [test for test in tests if test.keys]
    if unique:
        found = _repeated(rows, unique, history=history).groupBy("test").agg(count(lit(1)).alias("values")).collect()
        values: dict[int, int] = {row["test"]: row["values"] for row in found}
        failures.update((test.name, values.get(at, 0)) for at, test in enumerate(unique))
    return failures


def failures_of(tested: TestedRows, test: DataTest) -> DataFrame:
    """Returns the failures that `count_failures` counts: rows, or values with the number of their rows in `n_records`.

    Raises: Spark's errors.
    """
    rows = tested.rows
    if _is_query(test):
        return _rows_of_query(tested, test)
    if test.keys:
        keys = [_column(_key(0, at)).alias(name) for at, name in enumerate(test.keys)]
        return _repeated(rows, [test], history=tested.has_history).select(*keys, _column(_COUNT).alias(ROWS))
    if test.parent is None:
        return rows.where(~expr(passes(test)))
    checked, has_no_parent = _with_parent(rows, test, tested, 0)
    return checked.where(has_no_parent).select(*map(_column, rows.columns))


def _is_query(test: DataTest) -> bool:
    """Returns whether only the query of a generic test knows the rows that fail."""
    return test.is_generic and test.is_of_table


def _rows_of_query(tested: TestedRows, test: DataTest) -> DataFrame:
    """Returns the rows that fail. The query reads temp views, which other tests replace: use the rows before."""
    for view, table in {**tested.tables.get(test.name, {}), tested.name: tested.rows.where(_is_about(test))}.items():
        table.createOrReplaceTempView(quote_identifier(view))
    return tested.rows.sparkSession.sql(test.query or "")


def _with_parent(rows: DataFrame, test: DataTest, tested: TestedRows, number: int) -> tuple[DataFrame, Column]:
    """Returns each of `rows` once, with its parent, and the condition of those that need one and have none."""
    (parent,) = tested.tables[test.name].values()
    keys: Any = test.document
    value, other = _column(test.column or ""), _column(keys.field)
    kind = _common_type(rows, rows.select(value).schema[0].dataType, parent.select(other).schema[0].dataType)
    child_key, parent_key = _NAME.format("child", number), _NAME.format("parent", number)
    rows = rows.withColumn(child_key, when(_is_about(test), value).cast(kind))
    known = parent.select(other.cast(kind).alias(parent_key)).where(_column(parent_key).isNotNull()).distinct()
    joined = rows.join(known, _column(child_key) == _column(parent_key), "left")
    return joined, _column(child_key).isNotNull() & _column(parent_key).isNull()


def _common_type(rows: DataFrame, one: DataType, two: DataType) -> DataType:
    """Returns the type in which Spark compares values of two types."""
    values = [lit(None).cast(kind) for kind in (one, two)]
    return rows.sparkSession.range(0).select(coalesce(*values)).schema[0].dataType


def _repeated(rows: DataFrame, tests: Sequence[DataTest], *, history: bool) -> DataFrame:
    """Returns each value that several rows have, with the number of its test, in one pass over `rows`: each row becomes
    one row for each test, with the values of this test.
    """
    keys = {(at, number): name for at, test in enumerate(tests) for number, name in enumerate(test.keys)}
    types = {key: rows.select(_column(name)).schema[0].dataType for key, name in keys.items()}
    entries = []
    for at, test in enumerate(tests):
        values = [
            (_column(name) if key[0] == at else lit(None).cast(types[key])).alias(_key(*key))
            for key, name in keys.items()
        ]
        is_about = _is_about(test) & expr(_has_keys(test))
        entries.append(
            when(is_about & col(IS_CURRENT) if history else is_about, struct(lit(at).alias("test"), *values))
        )
    each = rows.select(explode(array_compact(array(*entries))).alias("each")).select("each.*")
    groups = each.groupBy("test", *(_column(_key(*key)) for key in keys))
    return groups.agg(count(lit(1)).alias(_COUNT)).where(_column(_COUNT) > 1)


def _has_keys(test: DataTest) -> str:
    """Returns the condition that a row meets if none of the values of a unique key is null."""
    return " and ".join(f"{quote_identifier(name, always=True)} is not null" for name in test.keys)


def _is_about(test: DataTest) -> Column:
    """Returns whether a row meets the `where` of the test."""
    return lit(True) if test.where is None else coalesce(expr(f"({test.where}\n)"), lit(False))


def _key(test: int, number: int) -> str:
    return _NAME.format(f"key {test}", number)


def _column(name: str) -> Column:
    return col(quote_identifier(name, always=True))
