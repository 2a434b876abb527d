"""What the compiler takes for a query or a command, next to what Spark's own parser says."""

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
"""Spark's parser makes a plan of these that is no command by its class, and runs them at once all the same."""


@pytest.mark.parametrize("sql", QUERIES)
def test_what_compiles_is_a_query_for_spark(spark: SparkSession, sql: str) -> None:
    """The lists of tests/unit/compiler/test_statement.py are true."""
    assert command_in(spark, sql) is None


@pytest.mark.parametrize("sql", COMMANDS)
def test_what_is_refused_is_no_query_for_spark(spark: SparkSession, sql: str) -> None:
    """It is a command, or nothing that Spark can read."""
    try:
        command = command_in(spark, sql)
    except ParseException:
        return
    assert command is not None or sql.startswith(PLANNED_AS_QUERIES)
