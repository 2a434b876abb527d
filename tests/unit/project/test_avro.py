"""The Spark types of Avro schemas."""

from __future__ import annotations

import json

import pytest

from sqlstream.project.messages.avro import (
    AvroSchemaError,
    AvroSchemas,
    PinnedSchema,
    avro_type,
    pinned_path,
    pinned_text,
    read_pinned,
)


def record(*fields: object, name: str = "Order") -> str:
    """Returns a schema of a record in the namespace `shop`."""
    return json.dumps({"type": "record", "name": name, "namespace": "shop", "fields": fields})


@pytest.mark.parametrize(
    ("schema", "wanted"),
    [
        ('"string"', "string"),
        ('{"type": "long", "logicalType": "timestamp-micros"}', "timestamp"),
        ('{"type": "long", "logicalType": "time-micros"}', "time(6)"),
        ('["null", "int"]', "int"),
        ('["int", "long", "null"]', "bigint"),
        ('["string", "int"]', "struct<member0:string,member1:int>"),
        (
            record({"name": "a", "type": {"type": "array", "items": {"type": "map", "values": "float"}}}),
            "struct<a:array<map<string,float>>>",
        ),
        (
            record(
                {"name": "a", "type": {"type": "record", "name": "P", "fields": [{"name": "x", "type": "bytes"}]}},
                {"name": "b", "type": ["null", "shop.P"]},
                {"name": "c", "type": "P"},
            ),
            "struct<a:struct<x:binary>,b:struct<x:binary>,c:struct<x:binary>>",
        ),
        (
            '{"type": "fixed", "name": "f", "size": 4, "logicalType": "decimal", "precision": 7, "scale": 2}',
            "decimal(7,2)",
        ),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', "string"),
    ],
)
def test_a_schema_has_sparks_type(schema: str, wanted: str) -> None:
    """Logical types, unions, named types and nested types become those of Spark."""
    assert str(avro_type(schema)) == wanted


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        ("{", "the JSON is not valid"),
        ("5", "`5` is not a type"),
        ('"Order"', "`Order` is not a type of Avro"),
        ('{"type": "record", "name": "a"}', "has no list of fields"),
        (record({"name": "next", "type": ["null", "shop.Order"]}), "contains itself"),
    ],
)
def test_other_texts_are_refused(schema: str, why: str) -> None:
    """Text that is no schema, and a schema that Spark cannot read, are refused with the reason."""
    with pytest.raises(AvroSchemaError, match=why):
        avro_type(schema)


def test_a_file_of_pinned_schemas_keeps_all_versions() -> None:
    """The file has all versions in order, and the newest one is the reader's, however they were ordered before."""
    new, old = PinnedSchema(2, 7, '"string"'), PinnedSchema(1, 9, '"bytes"')

    text = pinned_text("orders-value", [new, old])

    assert text.index('"version": 1') < text.index('"version": 2')
    assert read_pinned(text, "f") == AvroSchemas('"string"', {9: '"bytes"', 7: '"string"'}, "f")


@pytest.mark.parametrize("text", ["", "[]", '{"versions": []}', '{"versions": [{"id": 1}]}'])
def test_another_file_is_refused(text: str) -> None:
    """A file that `source schema` has not written is refused."""
    with pytest.raises(AvroSchemaError):
        read_pinned(text, "f")


def test_a_subject_is_one_file_name() -> None:
    """A subject cannot leave the folder of the pinned schemas."""
    assert pinned_path("../a/b-value") == "registry/..%2Fa%2Fb-value.json"
