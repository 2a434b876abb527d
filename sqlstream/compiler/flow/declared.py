"""The columns that the project declares for sources and seeds."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.type_rules import STRING, read_type
from sqlstream.project.formats.formats import format_of
from sqlstream.project.messages.message_format import AFTER, BEFORE, ROW
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, read_json_schema
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema
from sqlstream.project.values import Seed, SourceTable


def source_columns(node: str, table: SourceTable) -> Columns | None:
    """Returns the columns of a source table, `node` in the graph, without its watermark; None without a schema."""
    declared = table.spark_schema
    if declared is not None and declared.json is not None:
        found = read_json_schema(declared.json)
    else:
        ddl = format_of(table.format).columns_with(table.options) if declared is None else declared.ddl
        if ddl is None:
            return None
        try:
            found = parse_schema(ddl)
        except TypeSyntaxError:
            return None
    if not isinstance(found, Struct):
        return None
    messages = table.messages
    rows = (BEFORE, AFTER, ROW) if messages is not None and messages.lists_unavailable else ()
    return tuple(
        Column(
            item.name,
            as_read(item.type),
            origins=frozenset({(node, item.name)}),
            path=(node, item.name),
            may_lack=item.name in rows,
        )
        for item in found.fields
    )


def seed_columns(node: str, seed: Seed) -> Columns:
    """Returns the columns of a seed, `node` in the graph. Types that Spark infers are unknown."""
    declared = {column.name.lower(): read_type(column.data_type) for column in seed.columns if column.data_type}
    return tuple(Column(name, declared.get(name.lower()), origins=frozenset({(node, name)})) for name in seed.header)


def as_read(kind: DataType) -> DataType:
    """Returns the type of a column that a reader returns: text with a length becomes plain text."""
    if isinstance(kind, Primitive):
        return STRING if kind.name in ("char", "varchar") else kind
    if isinstance(kind, Array):
        return replace(kind, element=as_read(kind.element))
    if isinstance(kind, Map):
        return replace(kind, key=as_read(kind.key), value=as_read(kind.value))
    if isinstance(kind, Struct):
        return Struct(tuple(replace(item, type=as_read(item.type)) for item in kind.fields))
    return kind
