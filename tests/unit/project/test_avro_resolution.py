"""A reader's Avro schema for the records of writers with other logical types."""

from __future__ import annotations

import json

import pytest

from sqlstream.project.messages.avro_resolution import read_as

MILLIS = {"type": "long", "logicalType": "timestamp-millis"}
MICROS = {"type": "long", "logicalType": "timestamp-micros"}
LOCAL = {"type": "long", "logicalType": "local-timestamp-micros"}
LOCAL_MILLIS = {"type": "long", "logicalType": "local-timestamp-millis"}
DATE = {"type": "int", "logicalType": "date"}
OF_DAY = {"type": "long", "logicalType": "time-micros"}
OF_DAY_MILLIS = {"type": "int", "logicalType": "time-millis"}


def decimal(precision: int, scale: int) -> dict[str, object]:
    """Returns the schema of a decimal in bytes."""
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale}


def record(kind: object, name: str = "at", **more: object) -> dict[str, object]:
    """Returns the schema of a record with one field."""
    return {"type": "record", "name": "Row", "namespace": "shop", "fields": [{"name": name, "type": kind, **more}]}


@pytest.mark.parametrize(
    ("reader", "writer", "read"),
    [
        (MICROS, MILLIS, MILLIS),
        (MILLIS, MICROS, MICROS),
        (LOCAL, MILLIS, LOCAL_MILLIS),
        (["null", MICROS], MILLIS, ["null", MILLIS]),
        (["null", MICROS], ["null", "string", MILLIS], ["null", MILLIS]),
        ({"type": "array", "items": MICROS}, {"type": "array", "items": MILLIS}, {"type": "array", "items": MILLIS}),
        (
            {"type": "map", "values": ["null", MICROS]},
            {"type": "map", "values": MILLIS},
            {"type": "map", "values": ["null", MILLIS]},
        ),
        ({**record(MICROS), "name": "Inner"}, {**record(MILLIS), "name": "Inner"}, {**record(MILLIS), "name": "Inner"}),
        ({"type": MICROS}, MILLIS, {"type": MILLIS}),
        ("long", MILLIS, "long"),
        (MICROS, "long", MICROS),
        (decimal(12, 2), decimal(10, 2), decimal(12, 2)),
        ("bytes", decimal(10, 2), "bytes"),
        ("string", "string", "string"),
    ],
)
def test_times_have_the_unit_of_the_writer(reader: object, writer: object, read: object) -> None:
    """Units of times are the writer's, everywhere in a schema; all else is as the reader has it."""
    found, misread = read_as(json.dumps(record(reader, "field")), json.dumps(record(writer, "field")))

    assert (json.loads(found), misread) == (record(read, "field"), {})


@pytest.mark.parametrize(
    ("reader", "writer", "misread"),
    [
        (decimal(10, 2), decimal(10, 3), "`field` is decimal(10,3), and would be read as decimal(10,2)"),
        (MICROS, DATE, "`field` is date, and would be read as timestamp-micros"),
        (DATE, OF_DAY_MILLIS, "`field` is time-millis, and would be read as date"),
        (
            MICROS,
            {"type": "long", "logicalType": "timestamp-nanos"},
            "`field` is timestamp-nanos, and would be read as timestamp-micros",
        ),
        ("string", decimal(10, 2), "`field` is decimal(10,2), and would be read as string"),
        (decimal(10, 2), "string", "`field` is string, and would be read as decimal(10,2)"),
        (OF_DAY, OF_DAY_MILLIS, "`field` is time-millis, and would be read as time-micros"),
        (["null", decimal(10, 2)], decimal(9, 1), "`field` is decimal(9,1), and would be read as decimal(10,2)"),
        (
            {"type": "array", "items": {**record(MICROS), "name": "Inner"}},
            {"type": "array", "items": {**record(["null", DATE]), "name": "Inner"}},
            "`field[].at` is date, and would be read as timestamp-micros",
        ),
        (
            {"type": "fixed", "name": "Price", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 1},
            {"type": "fixed", "name": "Price", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 4},
            "`field` is decimal(9,4), and would be read as decimal(9,1)",
        ),
    ],
)
def test_a_field_that_would_be_misread_is_named(reader: object, writer: object, misread: str) -> None:
    """Avro would convert the number without an error."""
    assert read_as(json.dumps(record(reader, "field")), json.dumps(record(writer, "field")))[1] == {"field": misread}


def test_named_types_and_aliases() -> None:
    """A type can be used by its name, also within itself, and a field can have another name than in the writer's schema."""
    inner = {"type": "record", "name": "Price", "fields": [{"name": "amount", "type": decimal(10, 2)}]}
    other = {**inner, "fields": [{"name": "amount", "type": decimal(10, 4)}]}
    fields = [
        {"name": "first", "type": ["null", "int"]},
        {"name": "next", "type": ["null", "shop.Row"]},
        {"name": "cost", "type": other},
    ]
    writer = {"type": "record", "name": "Row", "namespace": "shop", "fields": fields}

    found = read_as(json.dumps(record(inner, "price", aliases=["cost"])), json.dumps(writer))[1]

    assert found == {"price": "`price.amount` is decimal(10,4), and would be read as decimal(10,2)"}


def of_type(name: str, kind: object) -> dict[str, object]:
    """Returns the schema of a record with this full name."""
    return {"type": "record", "name": name, "fields": [{"name": "at", "type": kind}]}


def of_fields(**kinds: object) -> dict[str, object]:
    """Returns the schema of a record with these fields."""
    return {"type": "record", "name": "Row", "fields": [{"name": name, "type": kind} for name, kind in kinds.items()]}


@pytest.mark.parametrize(
    ("reader", "writer", "read"),
    [
        (  # a union of records, as an envelope of events has it
            ["null", of_type("A", MICROS), of_type("B", MILLIS)],
            [of_type("B", MILLIS), of_type("A", MILLIS), "null"],
            ["null", of_type("A", MILLIS), of_type("B", MILLIS)],
        ),
        (
            [of_type("a.Item", decimal(10, 2)), of_type("b.Item", decimal(10, 4))],
            [of_type("b.Item", decimal(10, 4)), of_type("a.Item", decimal(10, 2))],
            [of_type("a.Item", decimal(10, 2)), of_type("b.Item", decimal(10, 4))],
        ),
        (
            of_fields(x=of_type("a.Item", MILLIS), y=of_type("b.Item", MICROS), z="a.Item"),
            of_fields(x=of_type("a.Item", MILLIS), y=of_type("b.Item", MILLIS), z="a.Item"),
            of_fields(x=of_type("a.Item", MILLIS), y=of_type("b.Item", MILLIS), z="a.Item"),
        ),
    ],
)
def test_types_are_compared_by_their_names(reader: object, writer: object, read: object) -> None:
    """Names can be in namespaces, and a union can have several records."""
    found, misread = read_as(json.dumps(reader), json.dumps(writer))

    assert (json.loads(found), misread) == (read, {})


def test_a_type_has_one_unit() -> None:
    """A type of the reader that has the values of two of the writer, in different units, would misread one of them."""
    reader = of_fields(x=of_type("Stamp", MICROS), y="Stamp")
    writer = of_fields(x=of_type("First", MILLIS), y=of_type("Second", MICROS))

    assert read_as(json.dumps(reader), json.dumps(writer))[1] == {
        "y": "`y.at` is timestamp-micros, and would be read as timestamp-millis"
    }
