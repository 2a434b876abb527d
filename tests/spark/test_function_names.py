"""The lists of Spark functions and the rules for their arguments agree with the installed Spark."""

from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.compiler.flow.functions import FUNCTIONS, TABLE_FUNCTIONS
from sqlstream.compiler.flow.type_rules import family
from tests.support.every_type import COLUMNS, analyser, create_view

OF_THE_GRAMMAR = {"convert", "identifier", "timediff", "timestampadd", "timestampdiff", "try_cast"}
"""Function names that only Spark's parser knows."""


def test_the_names_are_those_of_spark(spark: SparkSession) -> None:
    """The lists contain exactly Spark's function names."""
    words = {row[0] for row in spark.sql("show system functions").collect()}
    names = {word for word in words if word.isidentifier()} - {"case"}

    assert sorted(names - FUNCTIONS.keys() - TABLE_FUNCTIONS) == []
    assert sorted(FUNCTIONS.keys() - names - OF_THE_GRAMMAR) == []


def _refuses_the_number(spark: SparkSession, name: str, count: int) -> bool:
    try:
        spark.sql(f"select {name}({', '.join(['null'] * count)})")
    except PySparkException as error:
        return "WRONG_NUM_ARGS" in str(error)
    return False


@pytest.mark.slow
@pytest.mark.parametrize("side", ["fewer", "more"])
def test_other_numbers_of_arguments_are_refused(spark: SparkSession, side: str) -> None:
    """Spark refuses one argument fewer than the minimum and one more than the maximum.

    Each refusal takes a tenth of a second, so only every fifth function is checked.
    """
    counts = {name: function.counts for name, function in FUNCTIONS.items()}
    numbers = {
        name: each.listed[0] - 1 if side == "fewer" else each.listed[-1] + 1
        for name, each in counts.items()
        if each.listed
    }
    if side == "fewer":
        numbers |= {name: each.smallest - 1 for name, each in counts.items() if each.least or each.even}

    asked = [name for name in sorted(numbers.keys() - OF_THE_GRAMMAR)[::5] if numbers[name] >= 0]
    taken = [name for name in asked if not _refuses_the_number(spark, name, numbers[name])]

    assert taken == []


@pytest.mark.slow
def test_first_arguments_of_other_families_are_refused(spark: SparkSession) -> None:
    """A function with one argument accepts only columns of the type families that the list names."""
    create_view(spark)
    resolves = analyser(spark)
    single = {name: families for name, function in FUNCTIONS.items() if (families := function.families(1))}

    taken = [
        (name, column)
        for name, families in single.items()
        for column, type_ in COLUMNS.items()
        if family(type_) not in families | {"", "void"} and resolves(f"select {name}({column}) from t")
    ]

    assert taken == []
