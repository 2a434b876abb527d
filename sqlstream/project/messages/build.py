"""Reads the message formats of a source table from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.documents import TableDocument
from sqlstream.project.configuration.validate import Path
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.messages.avro_files import KeyOrValue, read_avro, registry_of
from sqlstream.project.messages.message_format import (
    AVRO,
    BYTES,
    DEBEZIUM,
    JSON,
    PLAIN,
    RAW,
    TEXT,
    MessageFormat,
    SchemaRegistry,
    change_columns,
    fixed_columns,
)
from sqlstream.project.messages.pinned import AvroSchemas
from sqlstream.project.secrets import OptionValue
from sqlstream.project.types.parser import TypeSyntaxError, parse_schema
from sqlstream.project.types.schema import build_schema, schema_of_columns
from sqlstream.project.types.types import DataType, Field, Primitive, Struct, columns_ddl, read_json_schema
from sqlstream.project.values import Schema
from sqlstream.project.yaml import YamlMapping, locate


@dataclass(frozen=True)
class TableNode:
    """A source table in YAML: its document, the options of its reader, and its path in the node of the file."""

    document: TableDocument
    options: Mapping[str, OptionValue]
    node: YamlMapping
    path: Path
    files: ProjectFiles
    findings: list[Finding]

    def place(self, key: str) -> Location:
        """Returns the location of a key of the table."""
        return locate(self.node, (*self.path, key))


def build_table_schema(table: TableNode) -> tuple[Schema | None, MessageFormat | None]:
    """Returns the columns of a source table, and the formats of its messages if it has a `value_format`.

    The columns are None if the table declares none. Errors are added to the findings of `table`.
    """
    document = table.document
    if document.value_format == AVRO:  # a `schema_file` is an Avro schema
        document = document.model_copy(update={"schema_file": None})
    declared = build_schema(document, table.node, table.path, table.files, table.findings)
    if document.value_format is None:
        return declared, None
    messages = _messages(table, document.value_format, declared)
    if not messages.columns:
        return None, messages
    place = table.place("value_format") if declared is None else declared.location
    return Schema(place, ddl=columns_ddl(messages.all_columns(table.options))), messages


def pinned_ids(messages: MessageFormat | None) -> Mapping[str, list[int]]:
    """Returns the ids of the pinned schemas by `avro` and `key_avro`, which `state:modified` compares."""
    pinned = {} if messages is None else {"avro": messages.avro, "key_avro": messages.key_avro}
    return {name: sorted(avro.writers) for name, avro in pinned.items() if avro is not None}


def _messages(table: TableNode, value_format: str, declared: Schema | None) -> MessageFormat:
    document, avro = table.document, None
    registry = registry_of(document, table.options, table.place("schema_registry"), table.findings)
    columns = tuple(fixed_columns(value_format)) if value_format in PLAIN else _fields(declared)
    if value_format == AVRO:
        avro, found = read_avro(_part(table, registry, "value"))
        columns = _projected(table, columns, found) if found is not None else ()
    if value_format == DEBEZIUM:
        columns = change_columns(columns)
    key, key_avro = _key(table, registry)
    options = document.value_options
    return MessageFormat(value_format, columns, document.key_format or RAW, key, options, registry, avro, key_avro)


def _part(table: TableNode, registry: SchemaRegistry | None, part: str) -> KeyOrValue:
    """Returns where the Avro schema of keys or values is."""
    if part == "key":
        subject = None if registry is None else registry.key_subject
        return KeyOrValue(table.files, table.findings, table.place("key_format"), subject, None)
    file, subject = table.document.schema_file, None if registry is None else registry.subject
    place = table.place("value_format" if file is None else "schema_file")
    return KeyOrValue(table.files, table.findings, place, subject, file)


def _projected(table: TableNode, declared: tuple[Field, ...], found: DataType) -> tuple[Field, ...]:
    """Returns the declared columns among those of the Avro schema; all without declared ones."""
    fields = found.fields if isinstance(found, Struct) else (Field("value", found),)
    known = {field.name: field.type for field in fields}
    place = table.place("schema" if table.document.schema_ else "columns")
    for field in declared:
        if str(known.get(field.name)) != str(field.type):
            table.findings.append(_other_type(field, known, place))
    return declared or fields


def _other_type(field: Field, known: Mapping[str, DataType], place: Location) -> Finding:
    names = ", ".join(f"{name} {kind}" for name, kind in known.items())
    return Finding(
        "invalid-value",
        f"the column `{field.name} {field.type}` is not in the Avro schema",
        f"its columns are {names}",
        "fix the name or the type, or remove the schema: a source has all columns of its Avro schema by default",
        place,
    )


def _key(table: TableNode, registry: SchemaRegistry | None) -> tuple[DataType, AvroSchemas | None]:
    form = table.document.key_format
    if form == AVRO:
        avro, found = read_avro(_part(table, registry, "key"))
        return found or BYTES, avro
    if form != JSON:
        return (Primitive("string") if form == TEXT else BYTES), None
    columns = table.document.key_columns
    if columns and not any(column.data_type for column in columns):
        table.findings.append(_without_types(table.place("key_columns")))
    declared = schema_of_columns(columns, table.node, table.path, table.files, table.findings, "key_columns")
    return Struct(_fields(declared)), None


def _without_types(place: Location) -> Finding:
    why, fix = "sqlstream parses a key into typed columns", "add `data_type:` to each column"
    return Finding("missing-key", "the columns of `key_columns` have no types", why, fix, place)


def _fields(schema: Schema | None) -> tuple[Field, ...]:
    """Returns the columns of a schema; none without a schema, or if only Spark could read it."""
    if schema is None:
        return ()
    try:
        found = read_json_schema(schema.json) if schema.json is not None else parse_schema(schema.ddl or "")
    except TypeSyntaxError:
        return ()
    return found.fields if isinstance(found, Struct) else ()
