"""The message formats of a Kafka source: read from YAML and Avro schemas, and their errors."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema, build_schema, fields_of, schema_of_columns
from sqlstream.project.configuration.documents import SchemaRegistry, TableDocument
from sqlstream.project.configuration.overrides import MESSAGE_KEYS
from sqlstream.project.configuration.validate import Path
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.messages.avro import AvroSchemaError, AvroSchemas, avro_type, pinned_path, read_pinned
from sqlstream.project.messages.message_format import (
    AVRO,
    BYTES,
    DEBEZIUM,
    JSON,
    PLAIN,
    PREFIX,
    PROTOBUF,
    RAW,
    TEXT,
    MessageFormat,
    change_columns,
    fixed_columns,
)
from sqlstream.project.secret_text import OptionValue
from sqlstream.project.types.data_types import Array, DataType, Field, Primitive, Struct, columns_ddl
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import nearest, quoted
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

    def location_of(self, key: str) -> Location:
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
    place = table.location_of("value_format") if declared is None else declared.location
    return Schema(place, ddl=columns_ddl(messages.all_columns(table.options))), messages


def pinned_ids(messages: MessageFormat | None) -> Mapping[str, list[int]]:
    """Returns the ids of the pinned schemas by `avro` and `key_avro`, which `state:modified` compares."""
    pinned = {} if messages is None else {"avro": messages.avro, "key_avro": messages.key_avro}
    return {name: sorted(avro.writers) for name, avro in pinned.items() if avro is not None}


def _messages(table: TableNode, value_format: str, declared: Schema | None) -> MessageFormat:
    document, avro = table.document, None
    registry = registry_of(document, table.options, table.location_of("schema_registry"), table.findings)
    columns = tuple(fixed_columns(value_format)) if value_format in PLAIN else fields_of(declared)
    if value_format == AVRO:
        avro, found = read_avro(_part(table, registry, "value"))
        columns = _projected(table, columns, found) if found is not None else ()
    if value_format == DEBEZIUM:
        columns = change_columns(columns, document.value_options)
    key, key_avro = _key(table, registry)
    options = document.value_options
    return MessageFormat(value_format, columns, document.key_format or RAW, key, options, registry, avro, key_avro)


def _part(table: TableNode, registry: SchemaRegistry | None, part: str) -> KeyOrValue:
    """Returns where the Avro schema of keys or values is."""
    if part == "key":
        subject = None if registry is None else registry.key_subject
        return KeyOrValue(table.files, table.findings, table.location_of("key_format"), subject, None)
    file, subject = table.document.schema_file, None if registry is None else registry.subject
    place = table.location_of("value_format" if file is None else "schema_file")
    return KeyOrValue(table.files, table.findings, place, subject, file)


def _projected(table: TableNode, declared: tuple[Field, ...], found: DataType) -> tuple[Field, ...]:
    """Returns the declared columns among those of the Avro schema; all without declared ones."""
    fields = found.fields if isinstance(found, Struct) else (Field("value", found),)
    known = {field.name: field.type for field in fields}
    place = table.location_of("schema" if table.document.schema_ else "columns")
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
        table.findings.append(_without_types(table.location_of("key_columns")))
    declared = schema_of_columns(columns, table.node, table.path, table.files, table.findings, "key_columns")
    return Struct(fields_of(declared)), None


def _without_types(place: Location) -> Finding:
    why, fix = "sqlstream parses a key into typed columns", "add `data_type:` to each column"
    return Finding("missing-key", "the columns of `key_columns` have no types", why, fix, place)


@dataclass(frozen=True)
class KeyOrValue:
    """Where the schema of keys or values is: a `subject` of the registry, and a `file` with the reader's schema.

    Errors are added to `findings`, at `place`.
    """

    files: ProjectFiles
    findings: list[Finding]
    place: Location
    subject: str | None
    file: str | None


def registry_of(
    document: TableDocument, options: Mapping[str, OptionValue], place: Location, findings: list[Finding]
) -> SchemaRegistry | None:
    """Returns the registry of a table, None without one. `options` are those of its reader, which name the topic."""
    declared = document.schema_registry
    if declared is None:
        return None
    topic = next((str(value).strip() for name, value in options.items() if name.lower() == "subscribe"), "")
    uses = {"subject": document.value_format == AVRO, "key_subject": document.key_format == AVRO}
    subjects: dict[str, str | None] = dict.fromkeys(uses)
    for (key, is_used), ending in zip(uses.items(), ("value", "key"), strict=True):
        named = getattr(declared, key) or (f"{topic}-{ending}" if topic and "," not in topic else None)
        if is_used and named is None:
            findings.append(_no_subject(key, place))
        subjects[key] = named if is_used else None
    return declared.model_copy(update=subjects)


def read_avro(part: KeyOrValue) -> tuple[AvroSchemas | None, DataType | None]:
    """Returns the Avro schemas of keys or values, and the Spark type of the reader's schema; None if there are none."""
    writers = _pinned(part)
    if part.file is not None:
        text = part.files.try_read(part.file, part.findings, part.place)
        if text is None or (part.subject is not None and writers is None):
            return None, None
        own = AvroSchemas(text, {}, part.file)
        return _checked(part, own if writers is None else replace(writers, reader=text))
    return _checked(part, writers) if writers is not None else (None, None)


def _pinned(part: KeyOrValue) -> AvroSchemas | None:
    """Returns the pinned schemas; None without a subject, or without its file, which a rule of the compiler reports."""
    if part.subject is None or not part.files.exists(pinned_path(part.subject)):
        return None
    path = pinned_path(part.subject)
    text = part.files.try_read(path, part.findings, part.place)
    try:
        return None if text is None else read_pinned(text, path)
    except AvroSchemaError as error:
        part.findings.append(_not_avro(path, error))
        return None


def _checked(part: KeyOrValue, schemas: AvroSchemas) -> tuple[AvroSchemas | None, DataType | None]:
    try:
        return schemas, avro_type(schemas.reader)
    except AvroSchemaError as error:
        part.findings.append(_not_avro(schemas.path, error))
        return None, None


def _not_avro(path: str, error: AvroSchemaError) -> Finding:
    return Finding(
        "invalid-value",
        f"`{path}` is not an Avro schema that Spark can read",
        str(error),
        "fix the schema; `sqlstream source schema` writes the files of a registry again",
        Location(path),
    )


def _no_subject(key: str, place: Location) -> Finding:
    return Finding(
        "missing-key",
        f"the schema registry needs the key `{key}`",
        "by default a subject is named after the topic, and the option subscribe does not name exactly one topic",
        f"add `{key}:` to schema_registry",
        place,
    )


_EXAMPLE = 'declare columns: or schema:, for example schema: "id bigint, ts timestamp"'


def message_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in the keys of `table` for messages of Kafka."""
    given = [key for key in table.locations if key in MESSAGE_KEYS]
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
    types = [key for key in ("schema", "schema_file") if key in table.locations]
    types += ["columns"] if any(column.data_type for column in table.columns) else []
    yield from _schema_problems(table, messages, types)
    yield from _registry_problems(table, messages)
    if messages.value_format == DEBEZIUM and messages.columns:
        yield from _nested_times(table, messages.record_columns)
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
    if messages.value_format == AVRO and messages.registry is None and "schema_file" not in table.locations:
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


def _nested_times(table: SourceTable, row: Sequence[Field]) -> Iterator[Finding]:
    for column in row:
        inner = column.type.element if isinstance(column.type, Array) else column.type
        if not isinstance(inner, Primitive) and re.search(r"\b(date|timestamp\w*)\b", str(inner)):
            yield _problem(
                table,
                "invalid-value",
                "value_format",
                f"declares the column `{column.name} {column.type}`, which contains a time",
                "Debezium writes times as numbers, and their unit is known only for a column or the items of an array",
                "declare the time as bigint or string, and convert it in a model",
            )


def _key_problems(table: SourceTable, messages: MessageFormat) -> Iterator[Finding]:
    has_columns, form = "key_columns" in table.locations, messages.key_format
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
    return Finding(code, f"source `{table.full_name}` {problem}", why, fix, table.locations.get(key, table.location))
