"""A view with a column of every type, and a check that Spark's analyser resolves a query over it."""

from __future__ import annotations

from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.project.types.data_types import DataType, Struct
from sqlstream.project.types.ddl import parse_schema

SCHEMA = parse_schema("""
    i1 tinyint, i4 int, i8 bigint, f4 float, f8 double, d decimal(10,2), b boolean, s string, bin binary, n void,
    v variant, dt date, ts timestamp, ntz timestamp_ntz, cal interval, ym interval year to month,
    ds interval day to second, ai array<int>, as_ array<string>, m map<string,int>, st struct<a:int,b:string>,
    am array<map<string,int>>, av array<variant>, sm struct<m:map<string,int>>
""")
COLUMNS: dict[str, DataType] = {field.name: field.type for field in SCHEMA.fields} if isinstance(SCHEMA, Struct) else {}
UNCASTABLE = {"n": "null", "cal": "make_interval(1)"}


def create_view(spark: SparkSession) -> None:
    """Creates the view `t` with one row of nulls."""
    casts = (UNCASTABLE.get(name, f"cast(null as {type_})") + f" as {name}" for name, type_ in COLUMNS.items())
    spark.sql(f"select {', '.join(casts)}").createOrReplaceTempView("t")


def analyser(spark: SparkSession) -> Callable[[str], bool]:
    """Returns a function that checks whether a query resolves, without the cost of building an error message."""
    state = spark._jsparkSession.sessionState()

    def resolves(sql: str) -> bool:
        try:
            return bool(state.analyzer().execute(state.sqlParser().parsePlan(sql)).resolved())
        except (PySparkException, Py4JError):
            return False

    return resolves
