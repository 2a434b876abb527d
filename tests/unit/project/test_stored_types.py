"""Which types of ORC and Avro files Spark reads rightly as which declared ones. A test with Spark compares all of them."""

from __future__ import annotations

import io

import pytest

from sqlstream.project.formats.stored_types import READS_RIGHTLY, misread_fields
from sqlstream.project.messages.avro import AvroSchemaError, file_type
from sqlstream.project.types.data_types import Struct
from sqlstream.project.types.ddl import known_schema, parse_type
from tests.services.avro_bytes import avro_file


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


def long(logical: str | None) -> dict[str, str]:
    """Returns the schema of a long."""
    return {"type": "long", **({"logicalType": logical} if logical else {})}


def test_columns_of_avro_that_spark_would_read_wrongly() -> None:
    """Spark makes a date of milliseconds, so microseconds are wrong, wherever they are. Avro has the names of all
    columns, also of those that are named like columns without one.
    """
    inner = {
        "type": "record",
        "name": "i",
        "fields": [{"name": "at", "type": ["null", long("local-timestamp-micros")]}],
    }
    types = {
        "_col0": long("timestamp-micros"),
        "_col1": ["null", {"type": "array", "items": inner}],
        "ms": long("timestamp-millis"),
        "n": long(None),
        "day": {"type": "int", "logicalType": "date"},
    }
    fields = [{"name": name, "type": kind} for name, kind in types.items()]
    file = avro_file({"type": "record", "name": "r", "fields": fields}, b"")
    stored = file_type(io.BytesIO(file))
    declared = known_schema("n date, ms date, _col1 array<struct<at: date>>, day date, _col0 date")

    assert isinstance(stored, Struct)
    assert [path for _, path, _, _ in misread_fields("avro", stored.fields, declared)] == ["_col1.element.at", "_col0"]
    assert not list(misread_fields("avro", stored.fields, known_schema("_col0 timestamp")))
    for broken in (b"", b"PAR1", file[:9], b"Obj\x01\x00"):
        with pytest.raises(AvroSchemaError):
            file_type(io.BytesIO(broken))
