"""Finds the classes of Spark to initialize before a query needs them."""

from __future__ import annotations

import pytest

from sqlstream.spark.jvm.session import slow_classes

CASES = "org.apache.spark.sql.catalyst.util.CollationAwareUTF8String"


@pytest.mark.parametrize("sql", ["select upper(name) from t", "select 1 where Lower (name) = 'a'", "select initcap(a)"])
def test_functions_that_change_letter_case_need_the_slow_class(sql: str) -> None:
    """Functions such as upper() need the slow class, in any letter case, and among other queries."""
    assert slow_classes(["select 1", sql]) == (CASES,)


@pytest.mark.parametrize("sql", ["select a from t", "select upper from t", "select my_upper(a) from t"])
def test_other_queries_need_no_slow_class(sql: str) -> None:
    """A column named like such a function, or another function, needs no slow class."""
    assert slow_classes([sql]) == ()
