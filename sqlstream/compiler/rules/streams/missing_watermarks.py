"""Where to add a missing watermark: as a hint in the SELECT itself, or in the upstream model."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.flow.columns import Column, Where
from sqlstream.compiler.flow.nodes import Aggregate, CteReference, Filter, Join, Node, Projection, Scan, View
from sqlstream.compiler.flow.types.values import TIMESTAMP
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.compiler.sql.problem import ORIGIN
from sqlstream.project.wording import quoted_list

DELAY = "'10 minutes'"
"""The delay, or length of a window, in fixes: long enough for most streams, and short enough to try out."""


def has_watermark(node: Node) -> bool:
    """Returns whether a column of `node` has a watermark."""
    return any(column.event_time for column in node.columns or ())


def first_time(node: Node) -> Column | None:
    """Returns the first column of `node` that can have a watermark."""
    return next((column for column in node.columns or () if column.type == TIMESTAMP), None)


def time_of(node: Node) -> str:
    """Returns the column of `node` that can have a watermark, as written in SQL; `event_time` if none is known."""
    time = first_time(node)
    return _qualified(below_filters(node), time) if time is not None else "event_time"


def _qualified(node: Node, column: Column) -> str:
    """Returns a column as written in SQL, with its relation if `node` is a join."""
    sides = zip(node.names, map(below_filters, node.children), strict=True) if isinstance(node, Join) else ()
    for name, side in sides:
        if any(item is column for item in side.columns or ()):
            return _qualified(side, column) if isinstance(side, Join) else f"{quote_identifier(name)}.{column.in_sql}"
    return column.in_sql


def time_key(node: Aggregate) -> str | None:
    """Returns the first time among the keys of `node`, or the time of a window among them, as written in SQL."""
    for key in node.keys:
        if key.column.window:
            return key.text.partition("(")[2].partition(",")[0]
        if key.is_column and key.column.type == TIMESTAMP:
            return _qualified(below_filters(node.children[0]), key.column)
    return None


def hint(*columns: str) -> str:
    """Returns the hint that adds a watermark to each of the columns, which are given as written in SQL."""
    return f"/*+ {', '.join(f'WATERMARK({column}, {DELAY})' for column in columns)} */"


def below_filters(node: Node) -> Node:
    """Returns the first operator from `node` down that is not a filter."""
    while isinstance(node, Filter):
        (node,) = node.children
    return node


def upstream_place(relation: Node, name: str) -> tuple[str, tuple[Where, ...]]:
    """Returns the part of a fix that adds the watermark on column `name` to the upstream model `relation`, and the
    place of that model's select list; nothing if the hint is not possible there.
    """
    view = below_filters(relation)
    if not isinstance(view, View):
        return "", ()
    (tree,) = view.children
    column = next((item for item in view.columns or () if item.name.lower() == name.lower()), None)
    rows = below_filters(tree.children[0]) if isinstance(tree, Projection) and len(tree.children) == 1 else None
    # a select list passes columns on as the same objects; the columns that it computes are new
    if rows is None or column is None or not any(item is column for item in rows.columns or ()):
        return "", ()
    return f"; or add {hint(column.in_sql)} after SELECT in {ORIGIN}, for every query that reads it", (tree.where,)


def sides_fix(node: Join, sides: Sequence[int]) -> tuple[str, str, tuple[Where, ...]]:
    """Returns how to add watermarks to the `sides` (0, 1) of a join, an alternative for the end of the fix if the hint
    is also possible upstream, and the places that the alternative names.
    """
    relations = [(node.names[side], below_filters(node.children[side])) for side in sides]
    columns = [_hinted(name, relation) for name, relation in relations]
    if not all(columns):
        return f"give {quoted_list([name for name, _ in relations])} a watermark", "", ()
    fix = f"add {hint(*columns)} after SELECT"
    if len(relations) > 1:
        return fix, "", ()
    (relation,) = (relation for _, relation in relations)
    time = first_time(relation)
    return fix, *(upstream_place(relation, time.name) if time else ("", ()))


def _hinted(name: str, relation: Node) -> str:
    """Returns the column of one side of a join for a hint; empty if the side is itself a join, or has no time."""
    time = first_time(relation) if isinstance(relation, Scan | View | CteReference | Projection) else None
    return f"{quote_identifier(name)}.{time.in_sql}" if time is not None else ""
