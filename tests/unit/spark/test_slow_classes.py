"""Which classes of Spark are initialised before a query needs them."""

from __future__ import annotations

import pytest

from sqlstream.spark.jvm.slow_classes import slow_classes

CASES = "org.apache.spark.sql.catalyst.util.CollationAwareUTF8String"


@pytest.mark.parametrize("sql", ["select upper(name) from t", "select 1 where Lower (name) = 'a'", "select initcap(a)"])
def test_what_changes_the_case_of_letters_needs_the_table_of_cases(sql: str) -> None:
    """Whatever the case of the function's name, and among other queries."""
    assert slow_classes(["select 1", sql]) == (CASES,)


@pytest.mark.parametrize("sql", ["select a from t", "select upper from t", "select my_upper(a) from t"])
def test_other_queries_need_no_slow_class(sql: str) -> None:
    """A column of that name, or another function, is none of those."""
    assert slow_classes([sql]) == ()
