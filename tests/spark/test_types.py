"""The project's parser and Spark's own parser agree on declared types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.project.types.data_types import read_json_schema
from sqlstream.project.types.ddl import parse_schema

SCHEMAS = Path(__file__).parents[1] / "unit" / "project" / "schemas"
GOOD = (SCHEMAS / "good.txt").read_text().splitlines()
BAD = (SCHEMAS / "bad.txt").read_text().splitlines()
WRITTEN_OTHERWISE = ("collate", "geo")
"""Types that Spark prints in a different form."""


def spark_schema(spark: SparkSession, ddl: str) -> Any:
    """Returns Spark's StructType for a schema, as a reader's `schema()` makes it."""
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.types.StructType.fromDDL(ddl)


@pytest.mark.parametrize("ddl", GOOD)
def test_accepted_types_are_the_same_in_spark(spark: SparkSession, ddl: str) -> None:
    """The parser builds the same tree as Spark, from DDL and from Spark's JSON."""
    found = spark_schema(spark, ddl)

    if not any(word in ddl for word in WRITTEN_OTHERWISE):
        assert str(parse_schema(ddl)) == found.catalogString()
        assert read_json_schema(found.json()) == parse_schema(ddl)


@pytest.mark.parametrize("ddl", BAD)
def test_refused_types_are_refused_by_spark(spark: SparkSession, ddl: str) -> None:
    """No type that Spark accepts is an error."""
    with pytest.raises((PySparkException, Py4JJavaError)):
        spark_schema(spark, ddl)
