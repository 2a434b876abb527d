"""Which types of ORC and Avro files Spark reads rightly as which declared ones. A test with Spark compares all of them."""

from __future__ import annotations

import pytest

from sqlstream.project.formats.stored_types import READS_RIGHTLY, misread_fields
from sqlstream.project.types.ddl import known_schema, parse_type


@pytest.mark.parametrize(
    ("stored", "declared", "expected"),
    [
        ("int", "bigint", True),
        ("bigint", "int", False),
        ("float", "double", True),
        ("double", "float", False),
        ("bigint", "double", False),
        ("int", "double", True),
        ("int", "decimal(12,2)", True),
        ("int", "decimal(10,2)", False),
        ("decimal(10,2)", "decimal(12,3)", True),
        ("decimal(10,2)", "decimal(12,1)", False),
        ("decimal(15,2)", "double", True),
        ("decimal(16,2)", "double", False),
        ("int", "boolean", False),
        ("bigint", "timestamp", False),
        ("string", "date", False),
        ("string", "varchar(3)", True),
    ],
)
def test_types_that_spark_reads_rightly(stored: str, declared: str, *, expected: bool) -> None:
    """A type is right if no value can be lost."""
    assert READS_RIGHTLY["orc"](parse_type(stored), parse_type(declared)) == expected


@pytest.mark.parametrize(
    ("stored", "declared", "paths"),
    [
        ("a int, b double", "B int, A bigint, c date", ["B"]),
        ("a struct<x: bigint, y: int>", "a struct<y: int, x: int, z: int>", ["a.x"]),
        ("a array<struct<x: bigint>>", "a array<struct<x: int>>", ["a.element.x"]),
        ("a map<int, bigint>", "a map<bigint, int>", ["a.value"]),
        ("a struct<x: int>", "a string", ["a"]),
        ("_col0 bigint, _col1 int", "id int, n int, more date", ["id"]),
        ("_col0 bigint, n int", "n bigint, id int", []),
    ],
)
def test_columns_that_spark_would_read_wrongly(stored: str, declared: str, paths: list[str]) -> None:
    """Columns and fields are found by name, and by position in files whose columns have no names."""
    found = list(misread_fields("orc", known_schema(stored), known_schema(declared)))

    assert [path for _, path, _, _ in found] == paths


def test_columns_of_avro_that_spark_would_read_wrongly() -> None:
    """Avro has the names of all columns, also of those that are named like columns without one. An int is a day."""
    stored = known_schema("_col0 timestamp, _col1 struct<at: timestamp_ntz>, n bigint, day int, name string")
    declared = known_schema("n date, _col1 struct<at: date>, _col0 date, day date, name int")

    assert [path for _, path, _, _ in misread_fields("avro", stored, declared)] == ["n", "_col1.at", "_col0"]
