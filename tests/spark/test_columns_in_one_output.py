"""What Spark reads from a folder whose files have different columns: the facts behind `state/output_columns.py`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrameReader, SparkSession

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.type_text import type_text
from sqlstream.state.ledger import OutputColumn, QueryIdentity
from sqlstream.state.output_columns import column_changes

Rows = Callable[[Path], list[dict[str, Any]]]

CHANGES = [
    ("1 as q", "'x' as q"),
    ("1 as q", "1L as q"),
    ("cast(1 as smallint) as q", "1 as q"),
    ("1 as q", "1.5d as q"),
    ("date'2024-01-01' as q", "timestamp'2024-01-01 00:00:00' as q"),
    ("cast(1.5 as decimal(10,2)) as q", "cast(1.5 as decimal(12,2)) as q"),
    ("'x' as q", "X'31' as q"),
    ("array(1) as q", "array('x') as q"),
    ("map('k', 1) as q", "map('k', 'x') as q"),
    ("named_struct('a', 1) as q", "named_struct('a', 'x') as q"),
    ("named_struct('a', 1) as q", "named_struct('a', 1, 'b', 2) as q"),
    ("1 as q", "1 as q, 2 as more"),
    ("1 as q", "1 as Q"),
    ("1 as q, 2 as r", "2 as r, 1 as q"),
    ("'x' as q", "'y' as q"),
]
"""What a query wrote before, and what it writes now."""


def identity(spark: SparkSession, columns: str, sink_format: str) -> QueryIdentity:
    """Returns a query that writes these columns."""
    schema = spark.sql(f"select {columns}").schema
    found = tuple(OutputColumn(field.name, type_text(field.dataType)) for field in schema)
    return QueryIdentity("q", "q", {}, {}, (), sink_format, "q", "append", False, {}, columns=found)


@pytest.mark.slow
@pytest.mark.parametrize("sink_format", ["parquet", "orc", "json"])
def test_allowed_changes_can_be_read_with_any_columns(spark: SparkSession, tmp_path: Path, sink_format: str) -> None:
    """After an allowed change all values can be read with the old columns, the new columns and both.

    A reader of JSON that declares columns must choose a type that fits both.
    """
    for number, (before, after) in enumerate(CHANGES):
        changes = column_changes(identity(spark, before, sink_format), identity(spark, after, sink_format))
        if any(change.undo for change in changes):
            continue
        folder = str(tmp_path / str(number))
        for columns in (before, after):
            spark.sql(f"select {columns}").write.mode("append").format(sink_format).save(folder)
        reader = spark.read.format(sink_format).option("mergeSchema", "true")
        schemas = [spark.sql(f"select {columns}").schema for columns in (before, after)]
        frames = [reader.load(folder)] + (
            [] if sink_format == "json" else [reader.schema(s).load(folder) for s in schemas]
        )
        assert [frame.where("q is not null").count() for frame in frames] == [2] * len(frames), (before, after)


@pytest.mark.slow
@pytest.mark.parametrize("sink_format", ["parquet", "orc"])
def test_refused_type_changes_cannot_be_read(spark: SparkSession, tmp_path: Path, sink_format: str) -> None:
    """When a type change is refused, Spark cannot merge the types of the two files."""
    refused = 0
    for number, (before, after) in enumerate(CHANGES):
        changes = column_changes(identity(spark, before, sink_format), identity(spark, after, sink_format))
        if not any(change.undo for change in changes):
            continue
        refused += 1
        folder = str(tmp_path / str(number))
        for columns in (before, after):
            spark.sql(f"select {columns}").write.mode("append").format(sink_format).save(folder)
        reader = spark.read.format(sink_format)
        if "decimal" not in before:
            assert _fails(reader.option("mergeSchema", "true"), folder), (before, after)
        elif sink_format == "parquet":  # Spark merges the two, but does not read the wider one as the narrower
            assert _fails(reader.schema(spark.sql(f"select {before}").schema), folder)
    assert refused > 5


def _fails(reader: DataFrameReader, folder: str) -> bool:
    try:
        reader.load(folder).collect()
    except SPARK_ERRORS:
        return True
    return False


def test_json_columns_that_differ_only_in_case_lose_values(spark: SparkSession, tmp_path: Path) -> None:
    """JSON columns that differ only in letter case lose values, so such a rename is refused."""
    for columns in ("1 as q", "2 as Q"):
        spark.sql(f"select {columns}").write.mode("append").json(str(tmp_path / "out"))

    assert spark.read.json(str(tmp_path / "out")).where("q is null").count() == 1
