"""Avro messages of a real broker, with the schemas of a registry: Apicurio with `make registry`, else a small server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.request import ProjectRequest, Selection
from sqlstream.app.show.show import ShowRequest, show_rows
from sqlstream.app.source.source_schema import source_schema
from sqlstream.errors import FindingsError
from sqlstream.project.messages.avro import avro_type
from sqlstream.project.types.data_types import Struct
from tests.services.avro_bytes import avro_double, avro_long, avro_string, framed
from tests.services.kafka_topics import Message, Topic
from tests.services.schema_registry import SchemaRegistry, start_registry
from tests.spark.conftest import ProjectFolder

ReadParquet = Callable[[Path], list[dict[str, Any]]]

ENV = {"SQLSTREAM_SECRET_REGISTRY": "hunter2"}


def record(*fields: Mapping[str, object]) -> dict[str, object]:
    """Returns the schema of a record."""
    return {"type": "record", "name": "Order", "namespace": "shop", "fields": list(fields)}


ID = {"name": "id", "type": "long"}
OLD = record(ID, {"name": "name", "type": "string"})
NEW = record(
    ID,
    {"name": "name", "type": "string"},
    {"name": "amount", "type": ["null", "double"], "default": None},
    {"name": "place", "type": ["null", "shop.Place"], "default": None},
)
PLACE = {"type": "record", "name": "Place", "namespace": "shop", "fields": [{"name": "city", "type": "string"}]}


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchemaRegistry]:
    """A running registry."""
    registry = start_registry(tmp_path_factory.mktemp("registry"))
    yield registry
    registry.stop()


def declare(folder: ProjectFolder, topic: Topic, rest: str) -> None:
    """Declares the topic as the source `bus.orders`, and models of it."""
    options = f"kafka.bootstrap.servers: '{topic.servers}', subscribe: {topic.name}, startingOffsets: earliest"
    folder.write(
        {
            "models/_bus.yml": f"sources: [{{name: bus, tables: [{{name: orders, format: kafka, {rest}, "
            f"options: {{{options}}}, on_corrupt: quarantine, quarantine_sink: lake}}]}}]\n",
            "models/orders.sql": "{{ config(sink='lake') }} select * from {{ source('bus', 'orders') }}",
            "models/counted.sql": "{{ config(sink='lake') }} select 1 as one from {{ source('bus', 'orders') }}",
        }
    )


def pin(folder: ProjectFolder) -> list[str]:
    """Runs `source schema` and returns its lines."""
    lines: list[str] = []
    source_schema(ProjectRequest(folder.root, env=ENV), "bus.orders", notify=lines.append)
    return lines


@pytest.mark.slow
def test_each_record_is_read_by_its_writers_schema(
    folder: ProjectFolder, topic: Topic, registry: SchemaRegistry, read_parquet: ReadParquet
) -> None:
    """Records of all pinned versions have the newest version's columns; all others are quarantined with the reason."""
    login = "username: app, password: \"{{ env_var('SQLSTREAM_SECRET_REGISTRY') }}\""
    declare(
        folder,
        topic,
        f"value_format: avro, key_format: avro, schema_registry: {{url: '{registry.url}', {login}}}",
    )
    subject = f"{topic.name}-value"
    registry.register("place", PLACE)
    key_id = registry.register(f"{topic.name}-key", "string")
    old = registry.register(subject, OLD)
    new = registry.register(subject, NEW, [{"name": "shop.Place", "subject": "place", "version": 1}])
    with pytest.raises(FindingsError) as refused:
        folder.run(env=ENV)
    assert {finding.code for finding in refused.value.findings} == {"missing-schema"}
    assert pin(folder)[0] == f"registry/{subject}.json has 2 versions of {subject}, 2 of them new"

    first = framed(old, avro_long(1) + avro_string("a"))
    second = framed(
        new, avro_long(2) + avro_string("b") + avro_long(1) + avro_double(2.5) + avro_long(1) + avro_string("Rome")
    )
    bad = {
        None: "the value is null",
        b"": "the value does not begin with a schema id",
        b"no avro": "the value does not begin with a schema id",
        second[:-1]: "the value cannot be read with its Avro schema",
        framed(old, b""): "the value cannot be read with its Avro schema",
        framed(old, avro_long(1) + avro_long(2**30)): "the value cannot be read with its Avro schema",
        framed(999_999, b"x"): f"the value has the schema id 999999, which is not in registry/{subject}.json",
    }
    key = framed(key_id, avro_string("k"))
    topic.send_bytes([Message(value, key) for value in (first, second, *bad)])
    results = {result.model: result for result in folder.run(env=ENV).results}

    assert {name: result.finding for name, result in results.items() if result.finding} == {}
    rows = sorted(read_parquet(folder.root / "store/orders"), key=lambda row: row["id"])
    columns = ("id", "name", "amount", "place", "_kafka_key")
    assert [[row[name] for name in columns] for row in rows] == [
        [1, "a", None, None, "k"],
        [2, "b", 2.5, {"city": "Rome"}, "k"],
    ]
    assert len(read_parquet(folder.root / "store/counted")) == 2
    kept = read_parquet(folder.root / "store/bus__orders__corrupt")
    assert {row["value"]: row["reason"] for row in kept} == bad


@pytest.mark.slow
def test_values_can_be_unions_of_records(folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet) -> None:
    """Times have the unit of their writer, also there; a number that would be misread makes the message corrupt."""

    def union(kind: str, logical: str) -> list[object]:
        at = {"name": "at", "type": {"type": kind, "logicalType": logical}}
        return [
            {"type": "record", "name": "Paid", "fields": [at]},
            {"type": "record", "name": "Sent", "fields": [{"name": "weight", "type": "long"}]},
        ]

    schemas = (union("int", "date"), union("long", "timestamp-millis"), union("long", "timestamp-micros"))
    versions = [{"version": number, "id": number, "schema": schema} for number, schema in enumerate(schemas, start=1)]
    folder.write({"registry/orders.json": json.dumps({"subject": "orders", "versions": versions})})
    registry = "schema_registry: {url: 'http://127.0.0.1:1', subject: orders}"
    declare(folder, topic, f"value_format: avro, {registry}, schema_changes: rescue")
    seconds = 1_767_225_600
    paid = (framed(1, avro_long(0) + avro_long(20_454)), framed(2, avro_long(0) + avro_long(seconds * 1_000)))
    sent = framed(3, avro_long(1) + avro_long(5))
    topic.send_bytes(
        [Message(each) for each in (*paid, framed(3, avro_long(0) + avro_long(seconds * 1_000_000)), sent)]
    )

    assert {result.finding for result in folder.run().results} == {None}

    rows = sorted(read_parquet(folder.root / "store/orders"), key=lambda row: row["_kafka_offset"])
    assert [row["member0"] and str(row["member0"]["at"]) for row in rows] == [*["2026-01-01 00:00:00"] * 2, None]
    assert [(row["member1"], row["_rescued_data"]) for row in rows] == [*[(None, None)] * 2, ({"weight": 5}, None)]
    (corrupt,) = read_parquet(folder.root / "store/bus__orders__corrupt")
    assert (corrupt["offset"], corrupt["reason"]) == (
        0,
        "the value has the schema id 1, in which `at` is date, and would be read as timestamp-micros",
    )


@pytest.mark.slow
def test_messages_without_ids_are_read_by_a_schema_file(
    folder: ProjectFolder, topic: Topic, read_parquet: ReadParquet
) -> None:
    """Without a registry all records have the schema of one file; `schema` selects some of its columns."""
    folder.write({"orders.avsc": json.dumps(OLD)})
    declare(folder, topic, "value_format: avro, schema_file: orders.avsc, schema: name string")
    topic.send_bytes([Message(avro_long(1) + avro_string("a")), Message(avro_long(1))])

    assert folder.run().succeeded

    (row,) = read_parquet(folder.root / "store/orders")
    assert (row["name"], "id" in row) == ("a", False)
    (kept,) = read_parquet(folder.root / "store/bus__orders__corrupt")
    assert kept["reason"] == "the value cannot be read with its Avro schema"


def test_a_registry_that_refuses_is_named(folder: ProjectFolder, topic: Topic) -> None:
    """A registry without an answer is an error with its address, and without the password."""
    declare(
        folder,
        topic,
        "value_format: avro, schema_registry: {url: 'http://app:hunter2@127.0.0.1:1', subject: x}",
    )

    with pytest.raises(FindingsError) as raised:
        pin(folder)

    (finding,) = raised.value.findings
    assert finding.code == "source-unreadable"
    assert "http://127.0.0.1:1" in finding.why
    assert "hunter2" not in str(finding)


EVERY = record(
    {"name": "b", "type": "boolean"},
    {"name": "i", "type": ["null", "int"]},
    {"name": "l", "type": ["int", "long"]},
    {"name": "f", "type": ["float", "double", "null"]},
    {"name": "s", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "y", "type": "bytes"},
    {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 3}},
    {"name": "x", "type": {"type": "fixed", "name": "x4", "size": 4}},
    {"name": "e", "type": {"type": "enum", "name": "kind", "symbols": ["A", "B"]}},
    {"name": "day", "type": {"type": "int", "logicalType": "date"}},
    {"name": "tm", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "ms", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "us", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    {"name": "local", "type": {"type": "long", "logicalType": "local-timestamp-micros"}},
    {"name": "m", "type": {"type": "map", "values": {"type": "array", "items": "double"}}},
    {"name": "u", "type": ["null", "string", "int", {"type": "record", "name": "P", "fields": [ID]}]},
    {"name": "again", "type": {"type": "array", "items": "P"}},
)


@pytest.mark.slow
def test_the_compiler_knows_sparks_types(folder: ProjectFolder, topic: Topic) -> None:
    """The columns of a schema with every type that Spark reads by default have the types that its connector gives them."""
    folder.write({"every.avsc": json.dumps(EVERY)})
    declare(folder, topic, "value_format: avro, schema_file: every.avsc")
    request = ShowRequest(ProjectRequest(folder.root), Selection(("source:bus.orders",)))

    (shown,) = show_rows(request).nodes

    found = {column.name: column.data_type for column in shown.columns}
    wanted = avro_type(json.dumps(EVERY))
    assert isinstance(wanted, Struct)
    assert {field.name: str(field.type) for field in wanted.fields}.items() <= found.items()
