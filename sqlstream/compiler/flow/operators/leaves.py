"""Sources and seeds as the leaves of a tree, with the columns that the project declares."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.compiler.flow.columns import Column, Columns, EventTime
from sqlstream.compiler.flow.nodes import EventTimeWatermark, Node, Scan
from sqlstream.compiler.flow.type_rules import STRING, read_type
from sqlstream.compiler.graph import seed_id, source_id
from sqlstream.compiler.sql.edits import Where
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, read_json_schema
from sqlstream.project.types.ddl import TypeSyntaxError, parse_schema
from sqlstream.project.values import Seed, SourceTable


def source_node(project: str, table: SourceTable) -> Node:
    """Returns the rows of a source table, with its watermark. Its columns are those that its schema declares."""
    node = source_id(project, table)
    here = Where(node, 0)
    columns = _columns(node, table)
    newest_first = any(name.lower() == "latestfirst" and value == "true" for name, value in table.options.items())
    scan = Scan(where=here, columns=columns, node_id=node, stream=table.mode == "stream", newest_first=newest_first)
    if table.watermark is None or table.mode == "batch":
        return scan
    return watermarked(scan, table.watermark.column, table.watermark.delay)


def watermarked(scan: Scan, named: str, delay: str) -> Node:
    """Returns the rows of a source with the watermark that it declares for a column."""
    time, columns = EventTime(delay, None), scan.columns
    if columns is not None:
        marks = [time if item.name.lower() == named.lower() else None for item in columns]
        columns = tuple(replace(item, event_time=mark) for item, mark in zip(columns, marks, strict=True))
    return EventTimeWatermark(where=scan.where, columns=columns, children=(scan,), event_time=time, column=named)


def seed_node(project: str, seed: Seed) -> Node:
    """Returns the rows of a seed. Types that Spark infers are unknown."""
    node = seed_id(project, seed.name)
    declared = {column.name.lower(): read_type(column.data_type) for column in seed.columns if column.data_type}
    columns = tuple(Column(name, declared.get(name.lower()), origins=frozenset({(node, name)})) for name in seed.header)
    return Scan(where=Where(node, 0), columns=columns, node_id=node, stream=False)


def stored_node(node: str, columns: Columns | None, *, stream: bool) -> Node:
    """Returns the rows of a stored output, whose model has these `columns`. Storage keeps their types, but neither
    their watermarks nor their marks as time windows.
    """
    stored = columns and tuple(
        Column(column.name, column.type and as_read(column.type), origins=column.origins) for column in columns
    )
    return Scan(where=Where(node, 0), columns=stored, node_id=node, stream=stream)


def _columns(node: str, table: SourceTable) -> Columns | None:
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
    return tuple(Column(item.name, as_read(item.type), origins=frozenset({(node, item.name)})) for item in found.fields)


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
