"""sqlglot parses Spark's streaming syntax, and all positions refer to the original text."""

from __future__ import annotations

import pytest
from sqlglot import exp

from sqlstream.compiler.sql.sqlglot_tree import FIRST_SAMPLE, parse_sql

CLAUSE = "WATERMARK ts DELAY OF INTERVAL 10 MINUTES"

READABLE = [
    f"select a from t {CLAUSE}",
    f"select x.a from t {CLAUSE} as x join u {CLAUSE} y on x.a = y.a",
    f"select a from (select a, ts from t) {CLAUSE} x where a > 1",
    f"select a from (select a, ts from t) {CLAUSE} where a > 1",
    f"select a from t TABLESAMPLE (10 ROWS) {CLAUSE}",
    "select a from t WATERMARK ts + interval 1 hour AS later DELAY OF INTERVAL '1' HOUR",
    "select window.start, count(*) from t group by window(ts, '10 minutes'), a",
    "select window, count(*) from t group by window",
    "select sum(a) over w from t window w as (order by b)",
    "select a from STREAM t",
    "select a from STREAM(t) x",
    "select a from t WITH ('key' = 'value') x",
    "select a from t IDENTIFIED BY source_name",
    "select stream, watermark from window",
]


@pytest.mark.parametrize("sql", READABLE)
def test_streaming_syntax_is_parsed(sql: str) -> None:
    """Streaming syntax is parsed, and each name in the tree has its position in the text."""
    tree = parse_sql(sql).tree

    assert tree is not None
    names = [name for name in tree.find_all(exp.Identifier) if "start" in name.meta]
    assert names
    for name in names:
        assert sql[name.meta["start"] : name.meta["end"] + 1].strip("`").lower() == name.this.lower()


@pytest.mark.parametrize(
    ("sql", "key"),
    [
        (f"select a from t {CLAUSE}", 14),
        (f"select a from t {CLAUSE} x", 16 + len(CLAUSE) + 1),
        (f"select a from db.t {CLAUSE}", 17),
        (f"select a from (select 1) {CLAUSE}", FIRST_SAMPLE),
    ],
)
def test_a_watermark_clause_is_found_at_its_relation(sql: str, key: int) -> None:
    """A watermark clause is stored under the position of its relation's alias, name or placeholder."""
    clause = parse_sql(sql).watermarks[key]

    assert (clause.expression, clause.name, clause.delay) == ("ts", None, "10 MINUTES")
    assert sql[clause.start :].startswith("WATERMARK")
    assert sql[clause.expression_start :].startswith("ts")


@pytest.mark.parametrize(
    "sql",
    [
        "selekt a from t",
        "select a from",
        "select * from (from t |> where a > 1)",
        "select 1; select 2",
        "select 'a",
        "",
    ],
)
def test_sql_that_cannot_be_parsed_has_no_tree(sql: str) -> None:
    """SQL that sqlglot cannot parse gives no tree and no error, because Spark may accept or explain it."""
    assert parse_sql(sql).tree is None


def test_stages_of_pipe_syntax_have_their_own_trees() -> None:
    """Each stage of pipe syntax is parsed separately, and its names have their offsets in the whole text."""
    sql = "from t |> where a > 1 |> aggregate count(*) as n group by window(b, '1 day') as w |> as c"

    parsed = parse_sql(sql)

    assert [stage.keyword for stage in parsed.stages] == ["WHERE", "AGGREGATE", "AS"]
    where, aggregate, alias = parsed.stages
    assert where.tree is not None
    assert [sql[column.this.meta["start"]] for column in where.tree.find_all(exp.Column)] == ["a"]
    assert aggregate.keys is not None
    assert [sql[column.this.meta["start"]] for key in aggregate.keys for column in key.find_all(exp.Column)] == ["b"]
    assert alias.name == "c"


def test_a_stage_that_cannot_be_parsed_does_not_affect_others() -> None:
    """A pipe stage that cannot be parsed has no tree, and the other stages keep theirs."""
    stages = parse_sql("from t |> where a > |> limit 3").stages

    assert [stage.tree is None for stage in stages] == [True, False]


@pytest.mark.parametrize(
    "sql",
    [
        *("select ,a from t", "select f(,a) from t", "select a from t order by ,a", "select a from t where a in ()"),
        *("select timestamp '2024-01-29 18.47.18' from t", "select date '2023-02-29' from t", "select x'abc' from t"),
        *("select interval '1' foo from t", "select interval 1 from t", "select interval '1-13' year to month from t"),
        *("select a from t where b similar to 'x'", "select a from t where b notnull", "select a from t for update"),
        *("select [1] from t", "select a[0:1] from t", "select a from t limit 1, 2", "select * except a from t"),
        *("select a from t offset 1 limit 2", "select a from t natural join u on true", "select a from t join u on"),
        *("select a from t order by a asc desc", "select a from 'x' t"),
        *("select count(*) filter (true) from t", "select extract('year' from a) from t", "from t |> where a > "),
        *("select a from t sort by a order by a", "select a, /*+ x */ b from t", "select 1.2.3 from t"),
    ],
)
def test_tolerance_of_sqlglot_is_doubtful(sql: str) -> None:
    """SQL of other dialects that sqlglot parses, and mistakes that it skips, are doubtful."""
    parsed = parse_sql(sql)

    assert parsed.tree is not None
    assert parsed.is_doubtful


@pytest.mark.parametrize(
    "sql",
    [
        *("select date '2024-02-29', timestamp '2024-01-29 18:47:18.5Z', time '10:00', x'0f', r'x' from t",),
        *("select interval '1' day, interval 2 hours 3 minutes, interval '1-2' year to month from t",),
        *("select interval '1 2:03:04.5' day to second, 1Y, 10S, 5L, 1.5BD, 1e-3, .5, array(), now() from t",),
        *("select cast(a as map<string, array<array<int>>>), trim(both 'x' from a), a[0], a.b.* from t",),
        *("select a from t lateral view explode(b) x as c join lateral (select 1) y using (a) where c in (1, 2)",),
        *(
            "select count(*) filter (where a is not distinct from b) over (rows between 1 preceding and 2 following) from t",
        ),
        *("select a from t tablesample (10 percent) union all select * except (b) from u limit 3 offset 2",),
        *("from t |> where a > 1 |> extend b + 1 as c |> aggregate count(*) as n group by c |> order by n desc",),
        *("select a as `order by`, 'it''s' as b, case when a then 'x' else 'y' end from t group by all order by all",),
    ],
)
def test_valid_sql_is_not_doubtful(sql: str) -> None:
    """Valid SQL is not doubtful, because asking Spark's parser takes a second."""
    parsed = parse_sql(sql)

    assert parsed.tree is not None
    assert not parsed.is_doubtful


def test_a_watermark_without_delay_is_read_as_far_as_it_goes() -> None:
    """A text that ends after `delay of` has no tree; one that ends after `interval` has a clause, which Spark refuses."""
    assert parse_sql("select a from t watermark a delay of").tree is None
    assert len(parse_sql("select a from t watermark a delay of interval").watermarks) == 1


def test_a_name_in_an_identifier_clause_keeps_its_place() -> None:
    """The name in IDENTIFIER('name') is a column at the offset of the name; in FROM the clause stays."""
    sql = "select identifier('amount') from identifier('orders')"

    tree = parse_sql(sql).tree

    assert tree is not None
    (column,) = tree.find_all(exp.Column)
    assert (column.name, column.this.meta["start"]) == ("amount", sql.index("amount"))
    assert "IDENTIFIER" in tree.args["from_"].sql().upper()
