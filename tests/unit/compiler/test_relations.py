"""The relations of a query; tests/spark compares them with Spark's plans of the same texts."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sqlstream.compiler.sql.relations import SqlRelation
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.tokens import SqlTokenError
from tests.support.sql_cases import SqlCase, read_cases


def _relations(sql: str) -> tuple[SqlRelation, ...]:
    return read_sql(sql).relations


@pytest.mark.parametrize("case", read_cases("relations"), ids=lambda case: case.name)
def test_find_relations(case: SqlCase) -> None:
    """The names of a query's relations are found in the order of the text."""
    assert ", ".join(relation.name for relation in _relations(case.before) if relation.name) == case.reads


def test_places_of_a_relation() -> None:
    """A relation has the offsets of its name, its watermark clause and its alias."""
    sql = "select 1 from db.`x y` tablesample (1 rows) WATERMARK ts DELAY OF INTERVAL '1' DAY as `a b` (c), d"
    relation, other = _relations(sql)
    assert (relation.name, relation.alias, relation.visible_name) == ("x y", "a b", "a b")
    assert sql[relation.name_start : relation.name_end] == "`x y`"
    assert sql[: relation.primary_end].endswith("(1 rows)")
    assert sql[: relation.alias_at].endswith("'1' DAY")
    assert relation.has_watermark
    assert relation.is_qualified
    assert (other.name, other.alias, other.alias_at, other.has_watermark) == ("d", None, len(sql), False)


def test_select_of_a_relation() -> None:
    """Each relation belongs to the SELECT of its FROM, at every depth and in FROM-first queries."""
    sql = "with c as (select 1 from a) select (select 2 from b) from c union from d select 3 union table e"
    text = read_sql(sql)
    texts = {r.name: text.tokens[r.select + 1].text if r.select is not None else None for r in text.relations}
    assert texts == {"a": "1", "b": "2", "c": "(", "d": "3", "e": None}


def test_common_table_expressions() -> None:
    """A CTE's name hides a view after the CTE's definition, and inside it only if the CTE is recursive."""
    sql = "with x as (select * from x), y as (select * from x) select * from x, y, (select * from X) z, other.x"
    assert [(r.name, r.is_cte) for r in _relations(sql) if r.name] == [
        ("x", False),
        ("x", True),
        ("x", True),
        ("y", True),
        ("X", True),
        ("x", False),
    ]
    assert all(r.is_cte for r in _relations("with recursive x as (select 1 union all select * from x) select * from x"))
    assert [r.is_cte for r in _relations("select * from (with x as (select 1) select * from x) a, x") if r.name] == [
        True,
        False,
    ]


def test_parenthesised_joins() -> None:
    """A join in parentheses is a relation only if it has an alias, which hides the relations inside."""
    assert [(r.name, r.is_nested) for r in _relations("select 1 from (a join b) join c")] == [
        ("a", False),
        ("b", False),
        ("c", False),
    ]
    assert [(r.name, r.alias, r.is_nested) for r in _relations("select 1 from (a join b) t")] == [
        (None, "t", False),
        ("a", None, True),
        ("b", None, True),
    ]


@pytest.mark.parametrize("opening", ["(", "(select * from ", "(select (", "f("])
def test_deep_parentheses_are_skipped(opening: str) -> None:
    """Parentheses that are too deep are skipped, whether they are closed or not."""
    closing = ")" * opening.count("(")
    assert _relations("select 1 from a, " + opening * 3000)[0].name == "a"
    assert _relations("select 1 from a, " + opening * 3000 + "x" + closing * 3000 + ", b")[-1].name == "b"


_WORDS = (
    *("select", "from", "with", "recursive", "as", "a", "b", "(", ")", ",", ".", "join", "lateral", "view", "stream"),
    *("table", "values", "union", "all", "except", "*", "|>", "watermark", "delay", "of", "interval", "1", "day", "@"),
    *("where", "group", "by", "window", "for", "version", "timestamp", "tablesample", "repeatable", "with", "changes"),
    *("to", "identified", "'s'", "`q`", "limit", "left", "on", "trim", "is", "distinct", "/*+ a */", "pivot", ";", "-"),
)


@example("from select @")
@given(st.lists(st.sampled_from(_WORDS), max_size=40).map(" ".join))
def test_any_tokens_give_valid_offsets(sql: str) -> None:
    """Any sequence of tokens gives relations whose offsets are in order and within the text."""
    try:
        relations = _relations(sql)
    except SqlTokenError:
        return
    for relation in relations:
        assert 0 <= relation.name_start < relation.name_end <= relation.primary_end <= relation.alias_at <= len(sql)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("select x from codes as c(x, y)", [True]),
        ("select x from codes tablesample (50 percent) c (x, y)", [True]),
        ("select x from (codes) as c(x, y)", [True, False]),
        ("select x from (select k, n from codes) as c(x, y)", [False, False]),
        ("select x from (values (1)) as c(x)", [False, False]),
        ("select x from range(3) as c(x), codes", [False, False]),
        ("select x from codes as c(", [False]),
        ("select x from (", []),
        ("select x from codes join (", [False]),
    ],
)
def test_an_alias_can_name_columns(sql: str, names: list[bool]) -> None:
    """A list of names after the alias of a table or a join; a text that ends in the middle is no exception."""
    assert [relation.names_columns for relation in read_sql(sql).relations] == names
