"""The compiler and Spark's own parser agree on which statements are queries and which are commands."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import ParseException
from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import command_in

STATEMENTS = Path(__file__).parents[1] / "unit" / "compiler" / "fixtures" / "statements"
QUERIES = (STATEMENTS / "queries.sql").read_text().splitlines()
COMMANDS = (STATEMENTS / "commands.sql").read_text().splitlines()

PLANNED_AS_QUERIES = ("execute", "call")
"""Statements that Spark's parser does not plan as commands, but that run at once."""


@pytest.mark.parametrize("sql", QUERIES)
def test_what_compiles_is_a_query_for_spark(spark: SparkSession, sql: str) -> None:
    """Spark treats every query in the list of tests/unit/compiler/test_statement.py as a query."""
    assert command_in(spark, sql) is None


@pytest.mark.parametrize("sql", COMMANDS)
def test_what_is_refused_is_no_query_for_spark(spark: SparkSession, sql: str) -> None:
    """What the compiler refuses is a command for Spark, or cannot be parsed."""
    try:
        command = command_in(spark, sql)
    except ParseException:
        return
    assert command is not None or sql.startswith(PLANNED_AS_QUERIES)
