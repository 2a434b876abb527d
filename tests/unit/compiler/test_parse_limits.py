"""Limits on the SQL given to sqlglot, which would crash on some texts or parse them for minutes."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sqlstream.compiler.sql.spark_reading import DEEPEST_NESTING, MOST_READS, is_bounded
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.sqlglot_tree import parse_sql

NESTS = {
    "parentheses": ("(", "1", ")"),
    "subqueries": ("(select * from ", "t", ")"),
    "relations": ("(t join ", "u", " on 1)"),
    "brackets": ("[", "1", "]"),
    "functions": ("f(", "1", ")"),
    "types": ("array<", "int", ">"),
    "struct": ("struct(", "1", ")"),
    "date": ("date(", "a", ")"),
    "conditions": ("case when a then ", "1", " end"),
    "negations": ("not ", "a", ""),
    "windows": ("sum(", "1", ") over ()"),
    "subquery in an expression": ("exists (select 1 from t where ", "1", ")"),
    "joins": ("", "exists (select 1 from t) ", " join t"),
    "exclamation marks": ("! ", "a", ""),
    "negations within comparisons": ("a = ! ", "a", ""),
    "signs": ("- ", "a", ""),
    "signs after operators": ("2 * - ", "a", ""),
    "intervals": ("interval ", "1", " day"),
    "quantifiers": ("any ", "1", ""),
    "cases without an end": ("case ", "1", ""),
    "other dialects' joins": ("", "exists (select 1 from t) ", " straight_join t"),
    "other dialects' stars": ("* replace ", "1", ""),
}

NO_SQL = ("relations", "cases without an end")
"""The texts that no parser accepts."""

ORDINARY = (
    "select " + "(" * 60 + "1" + ")" * 60,
    "select " + "struct(array(map(1, date(" * 2 + "a" + "))))" * 2,
    "select cast(a as " + "struct<x: array<" * 20 + "int" + ">>" * 20 + ")",
    "select a from t where a in (" + "1, " * 40_000 + "1)",
    "select a < b, c > d, array<int>" * 3,
    "select 1 from t" + " join u on t.a = u.a" * 500,
    "select 1 from t" + " cross join u" * 500,
    "select 1 from t" + " join u" * 10,
    "select 1 from t" + " union all select 1 from t join u" * 500,
)


DEEP = (
    "select " + "- " * 60 + "a - b" * 500,
    "select a from t where" + " not a and" * 500 + " not b",
    "select case when not a then -b" + " when not a then -b" * 500 + " end",
    "select " + "-a, " * 500 + "+a from t order by a desc" + ", b desc" * 500,
    "select a from t" + " union all select a from t" * 500,
    "select " + "a + b - c + " * 500 + "d * -e from t",
    "select array(" + "array(1), " * 500 + "array())",
    "select a from t where d > now() - interval 1 day" + " or d > now() - interval 1 day" * 500,
)


@pytest.mark.parametrize("sql", DEEP, ids=range(len(DEEP)))
def test_prefixes_side_by_side_are_within_the_limits(sql: str) -> None:
    """Prefix operators count towards the limit only if they are nested in each other's operands."""
    assert is_bounded(read_sql(sql))


@pytest.mark.parametrize("sql", ORDINARY, ids=range(len(ORDINARY)))
def test_ordinary_queries_are_within_the_limits(sql: str) -> None:
    """Deep expressions and long lists of realistic size stay within the limits."""
    assert is_bounded(read_sql(sql))


@pytest.mark.parametrize("name", NESTS)
def test_very_deep_nesting_is_not_parsed(name: str) -> None:
    """Sqlglot never gets a text of thousands of levels, which would overflow its stack or take minutes."""
    sql = nested(name, 3_000)
    assert not is_bounded(read_sql(sql))
    assert parse_sql(sql).tree is None


@pytest.mark.parametrize("name", NESTS)
@pytest.mark.parametrize("depth", [1, 20, DEEPEST_NESTING])
def test_nesting_within_the_limits_is_parsed(name: str, depth: int) -> None:
    """A nested text has a tree if it is within the limits, and only then. One level is always within them."""
    sql = nested(name, depth)
    is_small = is_bounded(read_sql(sql))
    assert (parse_sql(sql).tree is not None) is (is_small and name not in NO_SQL)
    assert is_small or depth > 1


def nested(name: str, depth: int) -> str:
    """Returns a query with `depth` levels of a kind of nesting."""
    before, inner, after = NESTS[name]
    return f"select * from a where {before * depth}{inner}{after * depth}"


def test_nested_structs_are_counted() -> None:
    """Nested `struct(` doubles the work at each level, because arguments are first parsed as types; it is limited."""
    levels = MOST_READS.bit_length()
    assert is_bounded(read_sql("select " + "struct(" * (levels - 5) + "1" + ")" * (levels - 5)))
    assert not is_bounded(read_sql("select " + "struct(" * levels + "1" + ")" * levels))


def test_joins_without_a_condition_are_counted() -> None:
    """A join without a condition doubles the work, because the text after it is parsed twice, so it is limited."""
    assert not is_bounded(read_sql("select 1 from t" + " join u" * 20))
    assert not is_bounded(read_sql("select 1 from (select 1 from t" + " left join (u) v" * 20 + ")"))


def test_mismatched_brackets_count_as_open() -> None:
    """Mismatched brackets count as open, so that they cannot hide the depth."""
    assert not is_bounded(read_sql("select " + "( ] > } " * (DEEPEST_NESTING + 1)))


@pytest.mark.parametrize(
    "opening",
    [
        "(select * from ",
        "(",
        "(t join ",
        "a, from ",
        "from ",
        "from select ",
        "lateral select ",
        "select join ",
        "describe ",
    ],
)
def test_no_nesting_crashes_the_process(opening: str) -> None:
    """A text of a hundred thousand levels does not crash the process, because sqlglot never parses it."""
    script = f"from sqlstream.compiler.sql.sqlglot_tree import parse_sql; parse_sql('select * from ' + {opening!r} * 100_000)"
    path = {"PYTHONPATH": ":".join(path for path in sys.path if path)}
    assert subprocess.run([sys.executable, "-c", script], env=path, timeout=120, check=False).returncode == 0
