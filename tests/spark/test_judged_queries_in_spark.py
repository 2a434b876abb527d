"""Spark's analyser agrees with the recorded verdicts on single queries, which also test the compiler."""

from __future__ import annotations

import pytest
from judged_queries import STREAM, TABLE, THEMES, judged
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def views(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> SparkSession:
    """A session with the stream `o` and the static table `c`."""
    folder = str(tmp_path_factory.mktemp("orders"))
    spark.readStream.schema(STREAM.replace(": ", ":")).json(folder).createOrReplaceTempView("o")
    spark.createDataFrame([], TABLE).createOrReplaceTempView("c")
    return spark


def _takes(spark: SparkSession, sql: str) -> bool:
    try:
        _ = spark.sql(sql).schema
    except PySparkException:
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("theme", THEMES)
def test_the_verdicts_are_those_of_spark(views: SparkSession, theme: str) -> None:
    """Spark accepts or refuses each query as recorded."""
    assert [sql for verdict, sql in judged(theme) if _takes(views, sql) != (verdict == "+")] == []
