"""Nesting that is too deep for Spark's parser is refused, and other nesting is not."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.sql_text import read_sql
from tests.corpus.too_deep import TOO_DEEP


@pytest.mark.parametrize("form", TOO_DEEP)
def test_nesting_that_overflows_the_parser_is_refused(form: str) -> None:
    """Nesting that overflows the parser's stack gives a problem at the first token that is too deep."""
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
def test_long_queries_are_not_refused(sql: str) -> None:
    """Long conditions, long lists and moderate nesting give no problem."""
    assert grammar_problems(read_sql(sql)) == []
