"""The errors in the message formats of a source table that the table alone shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from sqlstream.errors import Finding
from sqlstream.project.configuration.overrides import MESSAGE_KEYS
from sqlstream.project.messages.message_format import AVRO, DEBEZIUM, JSON, PLAIN, PREFIX, PROTOBUF, MessageFormat
from sqlstream.project.types.types import DataType, Primitive, Struct
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import nearest, quoted

_EXAMPLE = 'declare columns: or schema:, for example schema: "id bigint, ts timestamp"'


def message_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in the keys of `table` for messages of Kafka."""
    given = [key for key in table.places if key in MESSAGE_KEYS]
    if given and table.format != "kafka" and nearest(table.format, ["kafka"]):
        yield _problem(
            table,
            "unknown-format",
            "format",
            f"has the unknown format {quoted(table.format)}",
            f"its key {quoted(given[0])} belongs to Kafka's messages",
            "did you mean `kafka`?",
        )
    elif table.format and table.format != "kafka":
        yield from (_not_kafka(table, key) for key in given)
    elif table.messages is not None:
        yield from _value_problems(table, table.messages)
        yield from _key_problems(table, table.messages)
    elif given and "value_format" not in given:
        yield _problem(
            table,
            "missing-key",
            given[0],
            f"has the key {quoted(given[0])} but no value_format",
            "without `value_format` a Kafka source has Spark's columns, and its keys and values are bytes",
            "add `value_format:`; `value_format: raw` leaves the values as bytes",
        )


def _value_problems(table: SourceTable, messages: MessageFormat) -> Iterator[Finding]:
    types = [key for key in ("schema", "schema_file") if key in table.places]
    types += ["columns"] if any(column.data_type for column in table.columns) else []
    yield from _schema_problems(table, messages, types)
    yield from _registry_problems(table, messages)
    if messages.value_format == DEBEZIUM and messages.columns:
        yield from _nested_times(table, messages.columns[-1].type)
    for column in messages.columns:
        if column.name.lower().startswith(PREFIX):
            yield _problem(
                table,
                "invalid-value",
                types[0] if types else "value_format",
                f"declares the column {quoted(column.name)}",
                f"names that begin with `{PREFIX}` are reserved for metadata, such as `{PREFIX}offset`",
                "rename the column, or remove it: the metadata columns need no declaration",
            )


def _schema_problems(table: SourceTable, messages: MessageFormat, types: Sequence[str]) -> Iterator[Finding]:
    """Yields the problem of a schema that the format does not take, or needs. `types` are the keys that declare one."""
    form = messages.value_format
    if form in PLAIN and types:
        columns = f"`value {messages.columns[0].type}`"
        yield _problem(
            table,
            "fixed-schema",
            types[0],
            f"declares columns, but a value of the format {form} is one column",
            f"the column is {columns}; the columns of the metadata begin with `{PREFIX}`",
            "remove the schema, and the data_type of columns",
        )
    if form in (JSON, PROTOBUF, DEBEZIUM) and not types:
        why = f"values of the format {form} have the columns that the table declares"
        yield _problem(table, "missing-schema", "value_format", "has no columns", why, _EXAMPLE)


def _registry_problems(table: SourceTable, messages: MessageFormat) -> Iterator[Finding]:
    if messages.value_format == AVRO and messages.registry is None and "schema_file" not in table.places:
        yield _problem(
            table,
            "missing-schema",
            "value_format",
            "has neither a schema_file nor a schema_registry",
            "an Avro value can be read only with the schema that wrote it",
            "add schema_file: with the .avsc file of the producer, or schema_registry: {url: ...}",
        )
    if not messages.has_avro and messages.registry is not None:
        yield _problem(
            table,
            "unknown-key",
            "schema_registry",
            "has a schema_registry, but no format avro",
            "only Avro messages contain ids of schemas",
            "set `value_format: avro`, or remove `schema_registry`",
        )


def _nested_times(table: SourceTable, row: DataType) -> Iterator[Finding]:
    for column in row.fields if isinstance(row, Struct) else ():
        if not isinstance(column.type, Primitive) and re.search(r"\b(date|timestamp\w*)\b", str(column.type)):
            yield _problem(
                table,
                "invalid-value",
                "value_format",
                f"declares the column `{column.name} {column.type}`, which contains a time",
                "Debezium writes times as numbers, and Spark would read a nested one in the wrong unit",
                "declare the time as bigint or string, and convert it in a model",
            )


def _key_problems(table: SourceTable, messages: MessageFormat) -> Iterator[Finding]:
    has_columns, form = "key_columns" in table.places, messages.key_format
    if form == AVRO and messages.registry is None:
        yield _problem(
            table,
            "missing-schema",
            "key_format",
            "has a key_format: avro but no schema_registry",
            "sqlstream takes the schema of Avro keys from a registry",
            "add schema_registry: {url: ...}",
        )
    if form == JSON and not has_columns:
        yield _problem(
            table,
            "missing-schema",
            "key_format",
            "has no key_columns",
            f"a key of the format {form} has the columns that the table declares",
            "for example, add key_columns: [{name: id, data_type: bigint}]",
        )
    elif form != JSON and has_columns:
        yield _problem(
            table,
            "invalid-value",
            "key_columns",
            f"declares key_columns, but its key_format is {form}",
            f"a key of this format is one column, `{PREFIX}key {messages.key}`",
            "remove `key_columns`, or set `key_format: json`",
        )


def _not_kafka(table: SourceTable, key: str) -> Finding:
    return _problem(
        table,
        "unknown-key",
        key,
        f"has the key {quoted(key)}, but its format is {table.format}",
        "only Kafka messages have a key and a value to parse",
        "set format: kafka, or remove the key",
    )


def _problem(table: SourceTable, code: str, key: str, problem: str, why: str, fix: str) -> Finding:
    return Finding(code, f"source `{table.full_name}` {problem}", why, fix, table.places.get(key, table.location))
