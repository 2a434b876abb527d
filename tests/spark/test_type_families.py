"""The compiler's rules on comparing, choosing between and casting types agree with Spark's analyser for every pair."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest
from pyspark.sql import SparkSession

from sqlstream.compiler.flow.type_rules import can_be_cast, can_be_compared, have_common_type
from sqlstream.project.types.data_types import DataType
from tests.support.every_type import COLUMNS, analyser, create_view


@pytest.fixture(scope="module")
def resolves(spark: SparkSession) -> Callable[[str], bool]:
    """Returns whether a query over the view `t` resolves."""
    create_view(spark)
    return analyser(spark)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "rule"),
    [
        ("{0} = {1}", can_be_compared),
        ("{0} < {1}", can_be_compared),
        ("{0} between {1} and {1}", can_be_compared),
        ("coalesce({0}, {1})", have_common_type),
        ("case when b then {0} else {1} end", have_common_type),
    ],
)
def test_refused_pairs_of_types_are_refused(
    resolves: Callable[[str], bool], form: str, rule: Callable[[DataType, DataType], bool]
) -> None:
    """Spark refuses every pair of types that the compiler refuses."""
    wrong = [
        (one, other)
        for one, other in product(COLUMNS, COLUMNS)
        if not rule(COLUMNS[one], COLUMNS[other]) and resolves(f"select {form.format(one, other)} from t")
    ]

    assert wrong == []


def test_casts_that_are_refused_are_refused(resolves: Callable[[str], bool]) -> None:
    """Spark refuses every cast that the compiler refuses."""
    wrong = [
        (one, str(type_))
        for one, (other, type_) in product(COLUMNS, COLUMNS.items())
        if other != "n" and not can_be_cast(COLUMNS[one], type_) and resolves(f"select cast({one} as {type_}) from t")
    ]

    assert wrong == []
