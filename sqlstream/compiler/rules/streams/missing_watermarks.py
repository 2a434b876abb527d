"""Why a watermark is missing, and where to add it: as a hint in the SELECT itself, or in the upstream model."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlstream.compiler.flow.columns import Column, LostWatermark
from sqlstream.compiler.flow.nodes import Aggregate, CteReference, Filter, Join, Node, Projection, Scan, View
from sqlstream.compiler.flow.type_rules import TIMESTAMP
from sqlstream.compiler.graph import STORED, kind_of
from sqlstream.compiler.rules.query import Query
from sqlstream.compiler.sql.edits import ORIGIN, Where
from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted, quoted_list

DELAY = "'10 minutes'"
"""The delay, or length of a window, in fixes: long enough for most streams, and short enough to try out."""

_TRUNCATED = re.compile(r"date_trunc\(\s*'(second|minute|hour|day|week)'", re.IGNORECASE)
_DATE = re.compile(r"\bAS\s+DATE\b|\b(?:to_)?date\(", re.IGNORECASE)
"""Expressions that return the date of a time."""

_NEEDS_TIME = (
    "append mode emits a group when the watermark passes its event time, so one of the keys must be the event time"
)


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


def explain_groups(node: Aggregate, query: Query) -> tuple[str, str]:
    """Returns why no watermark ends the groups of `node`, and the fix."""
    lost = _lost(node)
    if lost is not None:
        return _explain_lost(lost, node, query)
    field = next((key.text for key in node.keys if key.column.event_time and not key.is_column), None)
    if field is not None:
        why = (
            f"`{field}` has a watermark, but it is a field of a struct, and Spark looks for watermarks only on columns"
        )
        return why, f"select {field} as a column in a subquery or an upstream model, and group by that column"
    times = [column.in_sql for column in node.children[0].columns or () if column.event_time]
    if times:
        return f"{_NEEDS_TIME}; the keys are {_keys(node)}", f"add window({times[0]}, {DELAY}) to GROUP BY"
    return _explain_missing(node, query)


def _explain_lost(lost: LostWatermark, node: Aggregate, query: Query) -> tuple[str, str]:
    """Returns the explanation for a key computed from a time with a watermark."""
    model = query.name_of(lost.where.model)
    why = (
        f"`{lost.column}` has a watermark, but `{lost.expression}` in `{model}` does not keep it: only the "
        "column itself and time windows over it do"
    )
    if lost.where.model != node.where.model:
        fix = f"select `{lost.column}` unchanged in `{model}` under another name, and group by a window over it"
        return why, fix
    window = f"window({quote_identifier(lost.column)}, '{_period(lost.expression)}')"
    if any(key.text == lost.expression for key in node.keys):
        return why, f"group by {window} instead, and select window.start"
    return why, f"also select `{lost.column}` unchanged, and group by {window}"


def _explain_missing(node: Aggregate, query: Query) -> tuple[str, str]:
    """Returns the explanation if no column has a watermark."""
    or_update = "" if format_of(query.sink).writes_files else ", or use output_mode='update'"
    grouped = time_key(node)
    if grouped is not None:
        fix = f"add {hint(grouped)} after SELECT{or_update}"
        return f"{_NEEDS_TIME}, and {quoted(grouped)} has no watermark{_of_stored(node)}", fix
    # the keys of DISTINCT are its select list, so other times are below that
    is_list = node.kind == "distinct"
    rows = next(iter(node.children[0].children), node.children[0]) if is_list else node.children[0]
    time, place = time_of(rows), "the select list" if is_list else "GROUP BY"
    fix = f"add {hint(time)} after SELECT and window({time}, {DELAY}) to {place}{or_update}"
    return f"{_NEEDS_TIME}, with a watermark; the keys are {_keys(node)}", fix


def _of_stored(node: Aggregate) -> str:
    """Returns a note if the rows come only from stored outputs, whose models may have a watermark."""
    scans = [item for item in node.walk() if isinstance(item, Scan) and item.stream]
    is_stored = bool(scans) and all(kind_of(item.node_id or "") == STORED for item in scans)
    return ": a stored output keeps rows, but no watermark" if is_stored else ""


def upstream_hint(node: Aggregate) -> tuple[str, tuple[Where, ...]]:
    """Returns an addition to the fix if the time that `node` groups by comes from an upstream view, where the hint can
    also be, and the place of that view's select list.
    """
    grouped = time_key(node)
    if grouped is None or _lost(node) is not None:
        return "", ()
    return upstream_place(node.children[0], grouped.rpartition(".")[2].strip().strip("`"))


def window_upstream(node: Aggregate) -> tuple[str, str, tuple[Where, ...]] | None:
    """Returns why the groups of `node` are never emitted, the fix, and the place that the fix names, for a key that is
    a time window from upstream; None if there is no such key, or if the column of the window is not known.
    """
    key = next((key for key in node.keys if key.column.window and "(" not in key.text), None)
    if key is None or key.column.lost is not None or len(key.column.origins) != 1:
        return None
    ((source, time),) = key.column.origins
    lists = [item for item in node.walk() if isinstance(item, Projection) and _reads(item, source)]
    if len(lists) != 1:
        return None
    why = (
        f"append mode emits a group when the watermark passes its window {quoted(key.text)}, but the time "
        f"column of that window, {quoted(time)}, has no watermark"
    )
    return why, f"add {hint(quote_identifier(time))} after SELECT in {ORIGIN}", (lists[0].where,)


def _reads(node: Projection, source: str) -> bool:
    below = [below_filters(child) for child in node.children]
    return any(isinstance(item, Scan) and item.node_id == source for item in below)


def _period(expression: str) -> str:
    """Returns the period to which an expression truncates a time, if a window can have it."""
    unit = _TRUNCATED.search(expression)
    if unit is not None:
        return f"1 {unit.group(1).lower()}"
    return "1 day" if _DATE.search(expression) else "10 minutes"


def _lost(node: Aggregate) -> LostWatermark | None:
    return next((key.column.lost for key in node.keys if key.column.lost is not None), None)


def _keys(node: Aggregate) -> str:
    return quoted_list([key.text for key in node.keys]) or "nothing"
