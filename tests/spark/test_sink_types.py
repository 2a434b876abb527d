"""The compiler accepts the column types that file sinks can write in a streaming query."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from sqlstream.compiler.rules.sinks.columns import unfit_partition, unwritten_reason
from sqlstream.project.types.data_types import DataType, Struct
from sqlstream.project.types.ddl import parse_schema

FORMATS = ("parquet", "orc", "json", "csv", "xml", "text")
SCHEMA = parse_schema("""
    i8 bigint, f8 double, d decimal(10,2), b boolean, s string, bin binary, n void, v variant, dt date, ts timestamp,
    ntz timestamp_ntz, cal interval, ym interval year to month, ds interval day, ai array<int>, av array<variant>,
    acal array<interval>, m map<string,int>, st struct<a:int,b:string>, sn struct<a:void>
""")
TYPES: dict[str, DataType] = {field.name: field.type for field in SCHEMA.fields} if isinstance(SCHEMA, Struct) else {}
INTERVALS = {"ym": "interval '1-2' year to month", "ds": "interval '1' day"}  # XML can write those that are null
VALUES = {
    **INTERVALS,
    "n": "null",
    "cal": "make_interval(1)",
    "acal": "array(make_interval(1))",
    "sn": "struct(null as a)",
}


def value_of(name: str) -> str:
    """Returns an expression of the column's type."""
    return VALUES.get(name, f"cast(null as {TYPES[name]})") + f" as {name}"


def writes(spark: SparkSession, folder: Path, format_name: str, columns: str, *partitions: str) -> bool:
    """Returns whether a streaming query writes these columns into files."""
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    writer = rows.selectExpr(*columns.split(" | ")).writeStream.format(format_name).option("rowTag", "row")
    if partitions:
        writer = writer.partitionBy(*partitions)
    try:
        query = (
            writer.trigger(availableNow=True).option("checkpointLocation", str(folder / "c")).start(str(folder / "o"))
        )
        query.awaitTermination()
    except PySparkException:
        return False
    return True


@pytest.mark.parametrize("format_name", FORMATS)
def test_accepted_types_are_written(spark: SparkSession, tmp_path: Path, format_name: str) -> None:
    """All accepted columns go into one file together; text files have only one column."""
    taken = [name for name, type_ in TYPES.items() if unwritten_reason(format_name, type_) is None]

    assert writes(
        spark, tmp_path, format_name, " | ".join(map(value_of, taken[:1] if format_name == "text" else taken))
    )


@pytest.mark.slow
@pytest.mark.parametrize("format_name", FORMATS)
def test_refused_types_are_not_written(spark: SparkSession, tmp_path: Path, format_name: str) -> None:
    """Each column that the compiler refuses makes the query fail."""
    refused = [name for name, type_ in TYPES.items() if unwritten_reason(format_name, type_) is not None]
    assert refused

    assert [name for name in refused if writes(spark, tmp_path / name, format_name, value_of(name))] == []


def test_refused_partition_types_are_not_written(spark: SparkSession, tmp_path: Path) -> None:
    """Each type that is refused as a partition makes the query fail, and all accepted types together do not."""
    refused = [name for name, type_ in TYPES.items() if unfit_partition(type_)]
    taken = [name for name in TYPES if name not in refused]

    assert writes(spark, tmp_path / "taken", "json", " | ".join(["value", *map(value_of, taken)]), *taken)
    assert [name for name in refused if writes(spark, tmp_path / name, "json", f"value | {value_of(name)}", name)] == []
