"""Why groups never come out in append mode, and what to write instead, in the model's own names."""

from __future__ import annotations

import re

from sqlstream.compiler.flow.columns import LostWatermark, Where
from sqlstream.compiler.flow.nodes import Aggregate, Projection, Scan
from sqlstream.compiler.rules.query import Query
from sqlstream.compiler.rules.streams.missing_watermarks import below_filters, hint, time_key, time_of, upstream_place
from sqlstream.compiler.sql.names import quote_identifier
from sqlstream.compiler.sql.problem import ORIGIN
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted, quoted_list

_TRUNCATED = re.compile(r"date_trunc\(\s*'(second|minute|hour|day|week)'", re.IGNORECASE)
_DATE = re.compile(r"\bAS\s+DATE\b|\b(?:to_)?date\(", re.IGNORECASE)
"""Expressions that give the date of a time."""


def why_unfinished(node: Aggregate, query: Query) -> tuple[str, str]:
    """Returns why no watermark lets the groups of `node` come out, and the way out."""
    lost = _lost(node)
    if lost is not None:
        model = query.names.get(lost.where.model, "")
        why = (
            f"`{lost.column}` has a watermark, but `{lost.expression}` in `{model}` does not keep it: only the "
            "column itself and time windows over it do"
        )
        if lost.where.model == node.where.model:
            window = f"window({quote_identifier(lost.column)}, '{_period(lost.expression)}')"
            if any(key.text == lost.expression for key in node.keys):
                return why, f"group by {window} instead, and select window.start"
            return why, f"also select `{lost.column}` unchanged, and group by {window}"
        fix = f"select `{lost.column}` unchanged in `{model}` under another name, and group by a window over it"
        return why, fix
    field = next((key.text for key in node.keys if key.column.event_time and not key.is_column), None)
    if field is not None:
        why = (
            f"`{field}` has a watermark, but it is a field of a struct, and Spark looks for watermarks only on columns"
        )
        return why, f"select {field} as a column in a subquery or an upstream model, and group by that column"
    times = [column.in_sql for column in node.children[0].columns or () if column.event_time]
    rule = (
        "append mode emits a group when the watermark passes its event time, so one of the keys must be the event time"
    )
    if times:
        return f"{rule}; the keys are {_keys(node)}", f"add window({times[0]}, '10 minutes') to GROUP BY"
    grouped = time_key(node)
    if grouped is not None:
        fix = f"add {hint(grouped)} after SELECT{_or_update(query)}"
        return f"{rule}, and {quoted(grouped)} has no watermark", fix
    # what DISTINCT keeps apart is its select list, and the times that it leaves out are below that
    is_list = node.kind == "distinct"
    rows = next(iter(node.children[0].children), node.children[0]) if is_list else node.children[0]
    time = time_of(rows)
    fix = (
        f"add {hint(time)} after SELECT and window({time}, '10 minutes') to "
        f"{'the select list' if is_list else 'GROUP BY'}{_or_update(query)}"
    )
    return f"{rule}, with a watermark; the keys are {_keys(node)}", fix


def upstream_hint(node: Aggregate) -> tuple[str, tuple[Where, ...]]:
    """Returns what to add to the fix where the time that `node` groups by comes from an upstream view, which may have
    the hint as well, and the place of that view's select list.
    """
    grouped = time_key(node)
    if grouped is None or _lost(node) is not None:
        return "", ()
    return upstream_place(node.children[0], grouped.rpartition(".")[2].strip().strip("`"))


def window_upstream(node: Aggregate) -> tuple[str, str, tuple[Where, ...]] | None:
    """Returns why the groups of `node` never come out, the way out and the place that it names, where a key is a time
    window that was made upstream; None where none is, or where it cannot be known which time it is over.
    """
    key = next((key for key in node.keys if key.column.window and "(" not in key.text), None)
    if key is None or key.column.lost is not None or len(key.column.origins) != 1:
        return None
    ((source, time),) = key.column.origins
    lists = [item for item in node.walk() if isinstance(item, Projection) and _reads(item, source)]
    if len(lists) != 1:
        return None
    name = quote_identifier(time)
    why = (
        f"append mode emits a group when the watermark passes its window {quoted(key.text)}, but the time "
        f"column of that window, {quoted(time)}, has no watermark"
    )
    return why, f"add {hint(name)} after SELECT in {ORIGIN}", (lists[0].where,)


def _reads(node: Projection, source: str) -> bool:
    below = [below_filters(child) for child in node.children]
    return any(isinstance(item, Scan) and item.node_id == source for item in below)


def _period(expression: str) -> str:
    """The period that an expression cuts a time to, as far as a window can have it."""
    unit = _TRUNCATED.search(expression)
    if unit is not None:
        return f"1 {unit.group(1).lower()}"
    return "1 day" if _DATE.search(expression) else "10 minutes"


def _or_update(query: Query) -> str:
    """The other way out, where the sink takes it."""
    return "" if format_of(query.sink).writes_files else ", or use output_mode='update'"


def _lost(node: Aggregate) -> LostWatermark | None:
    return next((key.column.lost for key in node.keys if key.column.lost is not None), None)


def _keys(node: Aggregate) -> str:
    return quoted_list([key.text for key in node.keys]) or "nothing"
