"""The types of new fields: read from Spark's text, merged, and added to declared columns."""

from __future__ import annotations

import pytest

from sqlstream.project.types.data_types import Field, Primitive, Struct, columns_ddl, type_ddl
from sqlstream.project.types.ddl import parse_schema, parse_type
from sqlstream.project.types.found_types import (
    declared_type,
    merge_found,
    new_columns,
    read_found_type,
)


def test_the_text_of_spark_is_read() -> None:
    """Names that look like types, and those in backquotes, are names."""
    found = read_found_type("OBJECT<OBJECT: OBJECT<OBJECT: VOID>, `OBJECT<`: ARRAY<OBJECT<>>, ```q```: DECIMAL(2,1)>")

    assert found is not None
    assert (
        type_ddl(found) == "struct<`OBJECT`: struct<`OBJECT`: void>, `OBJECT<`: array<struct<>>, ```q```: decimal(2,1)>"
    )
    assert read_found_type("BIGINT") is None
    assert read_found_type("OBJECT<a-b: BIGINT>") is None


@pytest.mark.parametrize(
    ("one", "other", "merged"),
    [
        ("bigint", "decimal(2,1)", "double"),
        ("bigint", "decimal(20,0)", "decimal(38,0)"),
        ("decimal(20,0)", "double", "double"),
        ("decimal(2,1)", "decimal(4,2)", "double"),
        ("void", "array<void>", "array<void>"),
        ("array<bigint>", "array<double>", "array<double>"),
        ("date", "timestamp", "timestamp"),
        ("date", "string", "string"),
        ("bigint", "string", "variant"),
        ("bigint", "timestamp", "variant"),
        ("variant", "bigint", "variant"),
        ("struct<a: bigint>", "struct<b: string, a: double>", "struct<`a`: double, `b`: string>"),
        ("struct<a: bigint>", "array<bigint>", "variant"),
        ("boolean", "boolean", "boolean"),
    ],
)
def test_types_are_merged_in_either_order(one: str, other: str, merged: str) -> None:
    """Numbers become the type that holds them all, as in Spark's inference; kinds that have no common type are mixed."""
    assert type_ddl(merge_found(parse_type(one), parse_type(other))) == merged
    assert type_ddl(merge_found(parse_type(other), parse_type(one))).count("variant") == merged.count("variant")


@pytest.mark.parametrize(
    ("found", "declared"),
    [
        ("void", None),
        ("array<void>", None),
        ("variant", "string"),
        ("array<variant>", "array<string>"),
        ("struct<>", "string"),
        ("struct<a: void>", "string"),
        ("struct<a: void, b: bigint>", "struct<b: bigint>"),
        ("struct<a: bigint, A: bigint>", "string"),
        ("struct<``: bigint, a: bigint>", "string"),
        ("decimal(3,2)", "double"),
        ("decimal(30,0)", "decimal(38,0)"),
        ("timestamp", "timestamp"),
    ],
)
def test_a_type_is_declared_if_it_is_known(found: str, declared: str | None) -> None:
    """Nulls alone have no type; in a string Spark reads every value."""
    kind = declared_type(parse_type(found))

    assert (None if kind is None else type_ddl(kind, as_written=True)) == declared


def test_new_fields_extend_columns() -> None:
    """New fields come last, also within structs, lists and maps; a name that differs in letter case is no new one."""
    schema = parse_schema(
        "id int, item struct<sku: string NOT NULL COMMENT 'x', parts: array<struct<no: int>>>, m map<string, struct<a: int>>"
    )
    assert isinstance(schema, Struct)
    found = read_found_type(
        "OBJECT<ID: BIGINT, color: STRING, `a b`: BIGINT, gone: VOID, _rescued_data: STRING, "
        "item: OBJECT<lot: BIGINT, SKU: STRING, parts: ARRAY<OBJECT<bin: STRING>>>, m: OBJECT<k: OBJECT<b: BIGINT>, l: OBJECT<c: VOID>>>"
    )
    assert found is not None

    columns = new_columns(schema.fields, found, ["_rescued_data"])

    assert columns.named == (
        "item.parts[].bin string", "item.lot bigint", "m[].b bigint", "color string", "`a b` bigint",
    )  # fmt: skip
    assert columns.unclear == ("item.SKU", "m[].c", "ID", "gone", "_rescued_data")
    assert columns_ddl(columns.changed, as_written=True) == (
        "item struct<sku: string NOT NULL COMMENT 'x', parts: array<struct<no: int, bin: string>>, lot: bigint>, "
        "m map<string, struct<a: int, b: bigint>>"
    )
    assert columns.added == (Field("color", Primitive("string")), Field("a b", Primitive("bigint")))
    assert new_columns((*schema.fields, *columns.added), Struct(columns.added)).named == ()
