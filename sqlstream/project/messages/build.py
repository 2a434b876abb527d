"""Reads the message formats of a source table from YAML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.configuration.documents import TableDocument
from sqlstream.project.configuration.validate import Path
from sqlstream.project.files.files import ProjectFiles
from sqlstream.project.messages.message_format import RAW, TEXT, TYPED, MessageFormat, fixed_columns
from sqlstream.project.secrets import OptionValue
from sqlstream.project.types.cursor import TypeSyntaxError
from sqlstream.project.types.ddl import columns_ddl
from sqlstream.project.types.parser import parse_schema
from sqlstream.project.types.schema import schema_of_columns
from sqlstream.project.types.types import DataType, Field, Primitive, Struct, read_json_schema
from sqlstream.project.values import Schema
from sqlstream.project.yaml import YamlMapping, locate


@dataclass(frozen=True)
class TableNode:
    """A source table in YAML: its document, and its path in the node of the file."""

    document: TableDocument
    node: YamlMapping
    path: Path
    files: ProjectFiles


def build_messages(table: TableNode, declared: Schema | None, findings: list[Finding]) -> MessageFormat | None:
    """Returns the formats of the messages of a table, None if it has no `value_format`.

    `declared` is the table's schema, which has the columns of the value.
    """
    document = table.document
    if document.value_format is None:
        return None
    is_typed = document.value_format not in (TEXT, RAW)
    columns = _fields(declared) if is_typed else tuple(fixed_columns(document.value_format))
    key_format = document.key_format or RAW
    return MessageFormat(document.value_format, columns, key_format, _key(table, findings), document.value_options)


def message_schema(
    messages: MessageFormat, options: Mapping[str, OptionValue], declared: Schema | None, place: Location
) -> Schema | None:
    """Returns the columns of a table with `messages` and these `options`; None if those of the value are unknown.

    It has the location of the `declared` schema, or `place` for a format with fixed columns.
    """
    if not messages.columns:
        return None
    ddl = columns_ddl(messages.all_columns(options))
    return Schema(place if declared is None else declared.location, ddl=ddl)


def _key(table: TableNode, findings: list[Finding]) -> DataType:
    if table.document.key_format in TYPED:
        columns, place = table.document.key_columns, locate(table.node, (*table.path, "key_columns"))
        if columns and not any(column.data_type for column in columns):
            findings.append(_without_types(place))
        return Struct(_fields(schema_of_columns(columns, table.node, table.path, table.files, findings, "key_columns")))
    return Primitive("string" if table.document.key_format == TEXT else "binary")


def _without_types(place: Location) -> Finding:
    why, fix = "a key is parsed to the types of its columns", "add `data_type:` to each column"
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
