"""What the compiler says of single queries is what Spark's analyser says; `tests/spark/test_judged_queries_in_spark.py`
asks Spark about the same ones.
"""

from __future__ import annotations

import pytest
from judged_queries import STREAM, TABLE, THEMES, judged

from sqlstream.compiler.flow.build import Builder
from sqlstream.compiler.flow.expressions import Text
from sqlstream.compiler.flow.nodes import Column, Scan, Where
from sqlstream.compiler.grammar import grammar_problems
from sqlstream.compiler.parse import parse_sql
from sqlstream.project.type_parser import parse_schema
from sqlstream.project.types import Struct


def _scan(name: str, schema: str, *, stream: bool) -> Scan:
    found = parse_schema(schema)
    assert isinstance(found, Struct)
    columns = tuple(Column(field.name, field.type) for field in found.fields)
    return Scan(where=Where(name, 0), columns=columns, node_id=name, stream=stream)


VIEWS = {"o": _scan("o", STREAM, stream=True), "c": _scan("c", TABLE, stream=False)}


def errors_in(sql: str) -> list[str]:
    """Returns the errors that are found in one query over `o` and `c`."""
    builder = Builder(Text("model.shop.asked", sql), parse_sql(sql), knows_functions=True)
    builder.build(VIEWS)
    problems = [*grammar_problems(builder.text.tokens, VIEWS), *builder.problems]
    return [f"{problem.code}: {problem.message}" for problem in problems if problem.severity == "error"]


@pytest.mark.parametrize("theme", THEMES)
def test_what_spark_takes_is_not_refused(theme: str) -> None:
    """No query that Spark's analyser takes has an error."""
    assert {sql: errors_in(sql) for verdict, sql in judged(theme) if verdict == "+" and errors_in(sql)} == {}


@pytest.mark.parametrize("theme", THEMES)
def test_what_spark_refuses_is_found(theme: str) -> None:
    """Every query that Spark refuses, and of which the compiler can know it, has an error."""
    assert [sql for verdict, sql in judged(theme) if verdict == "-" and not errors_in(sql)] == []


@pytest.mark.parametrize("theme", THEMES)
def test_silence_is_listed(theme: str) -> None:
    """What is found by now does not stay listed as unknown."""
    assert [sql for verdict, sql in judged(theme) if verdict == "?" and errors_in(sql)] == []
