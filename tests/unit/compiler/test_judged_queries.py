"""The compiler's verdict on single queries matches Spark's.

`tests/spark/test_judged_queries_in_spark.py` gives the same queries to Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import Scan
from sqlstream.compiler.flow.operators.builder import Builder
from sqlstream.compiler.flow.text import Text
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.sqlglot_tree import parse_sql
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import parse_schema
from tests.corpus.judged_queries import STREAM, TABLE, THEMES, judged


def _scan(name: str, schema: str, *, stream: bool) -> Scan:
    found = parse_schema(schema)
    assert isinstance(found, Struct)
    columns = tuple(Column(field.name, field.type) for field in found.fields)
    return Scan(where=Where(f"model.asked.{name}", 0), columns=columns, node_id=name, stream=stream)


EXPRESSIONS = Path(__file__).parents[2] / "spark" / "fixtures" / "expressions"
EVERY_TYPE = """
    i1 tinyint, i2 smallint, i4 int, i8 bigint, f4 float, f8 double, d decimal(10,2), dd decimal(38,10),
    d5 decimal(5,0), b boolean, s string, S2 string, sc string collate UTF8_LCASE, bin binary, n void, v variant,
    dt date, ts timestamp, ntz timestamp_ntz, cal interval, ym interval year to month, iy interval year,
    ds interval day to second, iday interval day, ihm interval hour to minute,
    ai array<int>, as_ array<string>, ad array<decimal(5,2)>, af8 array<double>, ai8 array<bigint>,
    aai array<array<int>>, adt array<date>, m map<string,int>, mi map<int,string>,
    st struct<a:int,b:string,c:struct<d:double>>, ast array<struct<k:string,w:bigint>>
"""
"""The columns that the expressions use (`tests/spark/test_expression_types.py`)."""

VIEWS = {
    "o": _scan("o", STREAM, stream=True),
    "c": _scan("c", TABLE, stream=False),
    "t": _scan("t", EVERY_TYPE, stream=False),
}


def errors_in(sql: str) -> list[str]:
    """Returns the errors of one query over `VIEWS`."""
    builder = Builder(Text("model.shop.asked", sql), parse_sql(sql), knows_functions=True)
    builder.build(VIEWS)
    problems = [*grammar_problems(read_sql(sql), VIEWS), *builder.problems]
    return [f"{problem.code}: {problem.message}" for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize("theme", THEMES)
def test_accepted_queries_have_no_error(theme: str) -> None:
    """A query that Spark's analyzer accepts has no error."""
    assert {sql: errors_in(sql) for verdict, sql in judged(theme) if verdict == "+" and errors_in(sql)} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_refused_queries_have_an_error(theme: str) -> None:
    """A query that Spark refuses for a reason that the compiler can know has an error."""
    assert [sql for verdict, sql in judged(theme) if verdict == "-" and not errors_in(sql)] == []


@pytest.mark.parametrize("theme", THEMES)
def test_the_list_of_unknown_queries_is_current(theme: str) -> None:
    """A query listed as unknown (`?`) has no error; otherwise the list is out of date."""
    assert [sql for verdict, sql in judged(theme) if verdict == "?" and errors_in(sql)] == []


@pytest.mark.parametrize("kind", ["plain", "aggregate", "window"])
def test_accepted_expressions_have_no_error(kind: str) -> None:
    """More than a thousand expressions that Spark's analyzer accepts have no error."""
    expressions = (EXPRESSIONS / f"{kind}.txt").read_text(encoding="utf-8").splitlines()

    assert {
        item: errors_in(f"select {item} from t") for item in expressions if errors_in(f"select {item} from t")
    } == {}
