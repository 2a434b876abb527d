"""Spark's analyser agrees with the recorded verdicts on single queries, which also test the compiler."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.spark.jvm.plans import check_batch
from tests.corpus.judged_queries import JOINED, STREAM, TABLE, THEMES, judged, judged_joins


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


@pytest.mark.slow
def test_keys_of_joins_are_those_of_spark(spark: SparkSession, tmp_path: Path) -> None:
    """Spark's planner finds a key for a join of two streams, or finds none, as recorded."""
    for name in ("a", "b"):
        spark.readStream.schema(JOINED.replace("\n", " ")).json(str(tmp_path)).createOrReplaceTempView(name)

    def is_planned(query: str) -> bool:
        try:
            check_batch(spark.sql(query), "append")
        except PySparkException:
            return False
        return True

    assert [query for verdict, query in judged_joins() if is_planned(query) != (verdict == "+")] == []
