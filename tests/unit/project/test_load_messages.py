"""How `value_format` and the other keys for messages change a Kafka source."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.project.values import SourceTable
from tests.support.loading_cases import load_good

METADATA = (
    "`_kafka_topic` string, `_kafka_partition` int, `_kafka_offset` bigint, `_kafka_timestamp` timestamp, "
    "`_kafka_timestamp_type` int"
)


def table_of(root: Path, rest: str, target: str | None = None) -> SourceTable:
    """Returns a Kafka source table with these further keys."""
    text = f"sources: [{{name: bus, tables: [{{name: orders, format: kafka, {rest}}}]}}]\n"
    overrides = (
        "{files: {sources: {bus.orders: {format: json, path: in, schema: id int}}}, broker: {}, "
        "text: {sources: {bus.orders: {value_format: text, schema: null, key_format: null, key_columns: null}}}}"
    )
    files = {"sources.yml": text, "project.yml": f"name: shop\ntargets: {overrides}\n", "orders.json": SPARK_JSON}
    (table,) = load_good(root, files, target or "broker").sources
    return table


SPARK_JSON = (
    '{"type": "struct", "fields": [{"name": "a b", "type": {"type": "array", "elementType": "long", "containsNull": '
    'true}, "nullable": true, "metadata": {}}]}'
)


@pytest.mark.parametrize(
    ("rest", "ddl"),
    [
        (
            "value_format: json, schema: 'id int, at timestamp'",
            f"`id` int, `at` timestamp, `_kafka_key` binary, {METADATA}",
        ),
        (
            "value_format: json, schema: 'o struct<`a b`: map<string, int>>'",
            f"`o` struct<`a b`: map<string, int>>, `_kafka_key` binary, {METADATA}",
        ),
        (
            "value_format: json, schema_file: orders.json, key_format: text",
            f"`a b` array<bigint>, `_kafka_key` string, {METADATA}",
        ),
        (
            "value_format: text, key_format: json, key_columns: [{name: id, data_type: int}]",
            f"`value` string, `_kafka_key` struct<`id`: int>, {METADATA}",
        ),
        (
            "value_format: raw, options: {includeheaders: true}",
            f"`value` binary, `_kafka_key` binary, {METADATA}, `_kafka_headers` array<struct<`key`: string, `value`: binary>>",
        ),
    ],
)
def test_the_columns_are_those_of_the_value_then_the_metadata(rest: str, ddl: str, tmp_path: Path) -> None:
    """The schema has the columns of the value, the key as its format says, and the metadata."""
    table = table_of(tmp_path, rest)

    assert table.spark_schema is not None
    assert table.spark_schema.ddl == ddl


def test_without_a_value_format_nothing_changes(tmp_path: Path) -> None:
    """Without `value_format` a source has no schema, so it has Spark's columns."""
    table = table_of(tmp_path, "options: {subscribe: orders}")

    assert (table.spark_schema, table.messages) == (None, None)


def test_a_null_removes_keys_for_messages(tmp_path: Path) -> None:
    """A target can read a topic as text, although its declared values have columns."""
    rest = "value_format: json, schema: id int, key_format: json, key_columns: [{name: id, data_type: int}]"

    messages = table_of(tmp_path, rest, "text").messages

    assert messages is not None
    assert messages.formats == {"value_format": "text", "key_format": "raw"}


def test_an_override_with_another_format_has_no_messages(tmp_path: Path) -> None:
    """A target can replace a topic by files: the keys for messages belong to Kafka."""
    rest = "value_format: json, schema: id int, key_format: json, key_columns: [{name: id, data_type: int}]"

    table = table_of(tmp_path, rest, "files")

    assert (table.format, table.messages, table.spark_schema and table.spark_schema.ddl) == ("json", None, "id int")
