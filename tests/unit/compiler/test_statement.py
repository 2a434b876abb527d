"""Telling queries, commands and empty models apart, with the lists in fixtures/statements.

tests/spark/test_statements.py gives the same lists to Spark.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.compiler.sql.statement import statement_problem

STATEMENTS = Path(__file__).parent / "fixtures" / "statements"
QUERIES = (STATEMENTS / "queries.sql").read_text().splitlines()
COMMANDS = (STATEMENTS / "commands.sql").read_text().splitlines()


@pytest.mark.parametrize("sql", [*QUERIES, "selct 1", "x", "1", ")", "with", "with a", "with a as", "from"])
def test_a_query_gives_no_problem(sql: str) -> None:
    """A query, or text that Spark itself must judge, gives no problem."""
    assert statement_problem(read_sql(sql), "orders") is None


@pytest.mark.parametrize("sql", COMMANDS)
def test_a_command_is_refused(sql: str) -> None:
    """A command gives a problem at its own keyword."""
    problem = statement_problem(read_sql(f"\n {sql.upper()}"), "orders")

    assert problem is not None
    assert problem.code == "no-query"
    assert f"({sql[problem.offset - 2 :].split()[0].upper()})" in problem.message


@pytest.mark.parametrize("sql", ["", " \n", "-- select 1", "/* select 1 */", ";", "/*+ BROADCAST(a) */"])
def test_a_model_without_a_query_is_refused(sql: str) -> None:
    """A model without a query gives a problem at its first line."""
    problem = statement_problem(read_sql(sql), "orders")

    assert problem is not None
    assert (problem.code, problem.offset) == ("no-query", 0)


def test_a_command_after_ctes_is_found_at_its_keyword() -> None:
    """In an INSERT after CTEs the problem is at INSERT, not at WITH."""
    sql = "with a(x) as (select 1), b as (select insert from c)\ninsert into t select * from a"
    problem = statement_problem(read_sql(sql), "orders")

    assert problem is not None
    assert sql[problem.offset :].startswith("insert into")
