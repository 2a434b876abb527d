"""Why groups are never emitted in append mode, and how to fix it, in the model's own names."""

from __future__ import annotations

import re

from sqlstream.compiler.flow.columns import LostWatermark, Where
from sqlstream.compiler.flow.nodes import Aggregate, Projection, Scan
from sqlstream.compiler.rules.query import Query
from sqlstream.compiler.rules.streams.missing_watermarks import (
    DELAY,
    below_filters,
    hint,
    time_key,
    time_of,
    upstream_place,
)
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.compiler.sql.problem import ORIGIN
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted, quoted_list

_TRUNCATED = re.compile(r"date_trunc\(\s*'(second|minute|hour|day|week)'", re.IGNORECASE)
_DATE = re.compile(r"\bAS\s+DATE\b|\b(?:to_)?date\(", re.IGNORECASE)
"""Expressions that return the date of a time."""

_NEEDS_TIME = (
    "append mode emits a group when the watermark passes its event time, so one of the keys must be the event time"
)


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
    model = query.names.get(lost.where.model, "")
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
        return f"{_NEEDS_TIME}, and {quoted(grouped)} has no watermark", fix
    # the keys of DISTINCT are its select list, so other times are below that
    is_list = node.kind == "distinct"
    rows = next(iter(node.children[0].children), node.children[0]) if is_list else node.children[0]
    time, place = time_of(rows), "the select list" if is_list else "GROUP BY"
    fix = f"add {hint(time)} after SELECT and window({time}, {DELAY}) to {place}{or_update}"
    return f"{_NEEDS_TIME}, with a watermark; the keys are {_keys(node)}", fix


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
