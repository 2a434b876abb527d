"""Grammar errors that are certain from the tokens of a query, and their places."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.sql_text import read_sql


@pytest.mark.parametrize(
    ("sql", "offset"),
    [
        ("select upper(a from o", 12),
        ("select a) from o", 8),
        ("select a, from o", 8),
        ("select f(a,) from o", 10),
        ("select 1; select 2", 10),
        ("selekt a from o", 0),
        ("select a as größe from o", 12),
        ("select a from o watermark ts delay of '1 minute'", 38),
        ("select a from o x watermark ts delay of interval 1 minute", 18),
        ("select a from stream o", 14),
        ("select a from o identified by x", 16),
        ("select count(*) from o group by ()", 23),
    ],
)
def test_a_certain_grammar_error_is_found_at_its_offset(sql: str, offset: int) -> None:
    """A certain grammar error gives one problem at the offset of the mistake."""
    assert [problem.offset for problem in grammar_problems(read_sql(sql), {"o"})] == [offset]


@pytest.mark.parametrize(
    "sql",
    [
        "select a, from p from o",
        "select a as `größe` from o;",
        "select stream.a from o stream",
        "from o select a",
        "(select a from o) union all values (1)",
        "with t(a, b) as (select 1, 2) select a from t",
        "select a from o watermark ts delay of interval 1 minute x",
        "select a from stream elsewhere identified by x",
        "select '(', \"]\", `,` from o -- (",
    ],
)
def test_queries_that_may_be_valid_give_no_problem(sql: str) -> None:
    """Names like keywords, brackets in strings and comments, and relations that are not views give no problem."""
    assert grammar_problems(read_sql(sql), {"o"}) == []
