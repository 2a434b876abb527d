"""Sources and seeds as the leaves of a tree, with the columns that the project declares."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.compiler.flow.columns import Column, Columns, EventTime
from sqlstream.compiler.flow.declared import as_read, seed_columns, source_columns
from sqlstream.compiler.flow.nodes import EventTimeWatermark, Node, Scan
from sqlstream.compiler.graph import seed_id, source_id
from sqlstream.compiler.sql.edits import Where
from sqlstream.project.values import Seed, SourceTable


def source_node(project: str, table: SourceTable) -> Node:
    """Returns the rows of a source table, with its watermark. Its columns are those that its schema declares."""
    node = source_id(project, table)
    here = Where(node, 0)
    columns = source_columns(node, table)
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
    """Returns the rows of a seed."""
    node = seed_id(project, seed.name)
    return Scan(where=Where(node, 0), columns=seed_columns(node, seed), node_id=node, stream=False)


def stored_node(node: str, columns: Columns | None, *, stream: bool) -> Node:
    """Returns the rows of a stored output, whose model has these `columns`. Storage keeps their types, but neither
    their watermarks nor their marks as time windows.
    """
    stored = columns and tuple(
        Column(
            column.name,
            column.type and as_read(column.type),
            origins=column.origins,
            path=column.path,
            may_lack=column.may_lack,
        )
        for column in columns
    )
    return Scan(where=Where(node, 0), columns=stored, node_id=node, stream=stream)
