"""Nesting that Spark's parser cannot take, and nesting that it can."""

from __future__ import annotations

import pytest
from too_deep import TOO_DEEP

from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.sql_text import read_sql


@pytest.mark.parametrize("form", TOO_DEEP)
def test_nesting_that_overruns_the_parser_is_refused(form: str) -> None:
    """The problem is placed at the first token that lies too deep."""
    sql = TOO_DEEP[form]

    (problem,) = grammar_problems(read_sql(sql))

    assert problem.code == "sql-syntax"
    assert len("select ") < problem.offset < len(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select * from t where " + " or ".join(f"a = {number}" for number in range(12_000)),
        "select " + ", ".join(f"a + {number} + b" for number in range(5_000)),
        "select * from t where a in (" + ", ".join(map(str, range(10_000))) + ")",
        "select " + "case when a then 1 else " * 1_500 + "1" + " end" * 1_500,
        "select " + "abs(" * 600 + "1" + ")" * 600,
        "select " + "(" * 600 + "1" + ")" * 600,
        "select " + ", ".join(["abs(abs(1))"] * 2_000),
    ],
)
def test_nesting_that_some_parser_takes_is_not_refused(sql: str) -> None:
    """Conditions, lists and what lies beside each other may be long."""
    assert grammar_problems(read_sql(sql)) == []
