"""Rules on aggregations: when they emit their rows, and which operators can follow."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.flow.nodes import Aggregate, CteReference, Deduplicate, Node, SetOperation, Sort
from sqlstream.compiler.rules.query import Query, QueryProblem, is_stateful, is_streaming_aggregate
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.streams.unfinished_groups import upstream_hint, why_unfinished, window_upstream
from sqlstream.errors import Severity

_DISTINCT = re.compile(r".*?\(\s*DISTINCT\b\s*", re.IGNORECASE)
"""What stands before the arguments of a call with DISTINCT."""


@rule("append-without-watermark")
def unfinished_groups(query: Query) -> Iterator[QueryProblem]:
    """In append mode a group is emitted when the watermark passes it, so a key needs a watermark."""
    if query.mode != "append":
        return
    for node in {node.where: node for node in query.all(Aggregate)}.values():
        known = node.children[0].columns is not None and not any(
            key.is_column and key.column.may_carry for key in node.keys
        )
        if not node.streaming or not known or any(key.is_column and key.column.event_time for key in node.keys):
            continue
        if node.kind == "distinct" and node.columns is None:
            continue
        what = {"distinct": "SELECT DISTINCT", "pivot": "PIVOT"}.get(node.kind, "an aggregation")
        why, fix, places = window_upstream(node) or _in_its_own_select(node, query)
        message = f"{what} in append mode has no watermark on its grouping columns"
        yield QueryProblem(node.where, "append-without-watermark", message, why, fix, origins=places)


def _in_its_own_select(node: Aggregate, query: Query) -> tuple[str, str, tuple[Where, ...]]:
    why, fix = why_unfinished(node, query)
    upstream, places = upstream_hint(node) if "WATERMARK(" in fix else ("", ())
    return why, fix + upstream, places


@rule("append-without-watermark")
def subtractions(query: Query) -> Iterator[QueryProblem]:
    """EXCEPT deduplicates rows as DISTINCT does, so in append mode it needs a watermark too."""
    if query.mode != "append":
        return
    for node in query.all(SetOperation):
        columns = node.children[0].columns
        left, right = (child.streaming for child in node.children)
        without = columns is not None and not any(column.event_time for column in columns)
        if node.kind == "except" and left and not right and without:
            yield QueryProblem(
                node.where,
                "append-without-watermark",
                "EXCEPT in append mode has no watermark on its columns",
                "EXCEPT keeps each distinct row once, and emits it only when the watermark passes it",
                "use a left anti join with the static table, which needs no watermark",
            )


@rule("complete-without-aggregation")
def complete_without_aggregation(query: Query) -> Iterator[QueryProblem]:
    """Complete mode writes the whole result each time, and only an aggregation keeps it."""
    if query.mode != "complete":
        return
    nodes = query.nodes
    if any(node.columns is None for node in nodes) or any(is_streaming_aggregate(node) for node in nodes):
        return
    yield QueryProblem(
        query.node.where,
        "complete-without-aggregation",
        f"`{query.model}` streams in complete mode without a streaming aggregation",
        "complete mode writes the whole result in each batch, which Spark keeps only for aggregations",
        f"use output_mode='append'{', and delete the sort' if any(sort.streaming for sort in query.all(Sort)) else ''}",
    )


@rule("distinct-aggregate")
def distinct_functions(query: Query) -> Iterator[QueryProblem]:
    """Aggregate functions with DISTINCT would keep every value forever."""
    for node in query.all(Aggregate):
        if not node.streaming:
            continue
        for call in node.functions:
            if call.distinct:
                values = _DISTINCT.sub("", call.text, count=1).removesuffix(")")
                values = f"struct({values})" if "," in values else values
                fix = f"use collect_set({values}), and compute the result from it"
                if call.name == "count":
                    fix = f"use approx_count_distinct({values}), or for few values size(collect_set({values}))"
                yield QueryProblem(
                    call.where,
                    "distinct-aggregate",
                    f"`{call.text}` cannot run on a stream",
                    "Spark does not support DISTINCT in aggregate functions of a streaming query",
                    f"{fix}; or use SELECT DISTINCT in an upstream model, with a watermark",
                )


@rule("several-aggregations")
def stateful_after_aggregation(query: Query) -> Iterator[QueryProblem]:
    """Outside append mode an aggregation updates emitted rows, so no stateful operator can follow."""
    if query.mode == "append":
        return
    stateful = [node for node in query.nodes if is_stateful(node)]
    refused = next((node for node in stateful if _aggregates_below(node, CteReference)), None)
    if refused is not None:
        yield _after_aggregation(refused, query, Severity.ERROR)
        return
    # Spark does not look behind a CTE's name, and runs it with the false result that it refuses elsewhere
    passed = next((node for node in stateful if _aggregates_below(node)), None)
    if passed is not None:
        yield _after_aggregation(passed, query, Severity.WARNING)
        return
    forgetful = next((node for node in query.all(Deduplicate) if _aggregates_below(node)), None)
    if forgetful is not None:
        yield _after_aggregation(forgetful, query, Severity.WARNING)


def _aggregates_below(node: Node, *ends: type[Node]) -> bool:
    return any(is_streaming_aggregate(item) for child in node.children for item in child.walk(*ends))


def _after_aggregation(node: Node, query: Query, severity: Severity) -> QueryProblem:
    if isinstance(node, Aggregate) and node.kind == "pivot" and node.children[0].where == node.where:
        return _pivot(node, query, severity)
    if isinstance(node, Deduplicate):
        return _deduplicated_aggregation(node, query, severity)
    given = "its whole result in each batch" if query.mode == "complete" else "a row again each time it changes"
    return QueryProblem(
        node.where,
        "several-aggregations",
        f"`{query.model}` aggregates or joins the result of an aggregation in {query.mode} mode",
        f"in this mode the first aggregation emits {given}, and the next operator counts these as new rows",
        "use output_mode='append' with a watermark, or write the first result to a sink and read it from there",
        severity,
    )


def _deduplicated_aggregation(node: Deduplicate, query: Query, severity: Severity) -> QueryProblem:
    return QueryProblem(
        node.where,
        "several-aggregations",
        f"`{query.model}` deduplicates the result of an aggregation in {query.mode} mode",
        "in this mode an updated row is emitted again, and the deduplication keeps only the first row with the "
        f"same {', '.join(node.keys)}",
        "deduplicate before the aggregation, or use output_mode='append' with a watermark",
        severity,
    )


def _pivot(node: Aggregate, query: Query, severity: Severity) -> QueryProblem:
    first = node.children[0]
    call = first.functions[0].text if isinstance(first, Aggregate) and first.functions else "sum(...)"
    by = first.keys[-1].text if isinstance(first, Aggregate) and first.keys else "column"
    return QueryProblem(
        node.where,
        "several-aggregations",
        f"PIVOT is not possible in {query.mode} mode",
        f"Spark computes `{call}` for each `{by}`, then uses a second aggregation to combine the values into one row",
        f"write an aggregate for each value: {call} filter (where {by} = ...) as name, with GROUP BY",
        severity,
    )


@rule("rows-beside-aggregation", severity=Severity.WARNING)
def rows_beside_aggregation(query: Query) -> Iterator[QueryProblem]:
    """In complete mode only an aggregation keeps its rows; rows from the other side of a UNION ALL are emitted once."""
    if query.mode != "complete":
        return
    for node in query.all(SetOperation):
        kept = [_is_kept(child) for child in node.children]
        if node.kind == "union" and node.streaming and kept[0] != kept[1]:
            yield QueryProblem(
                node.where,
                "rows-beside-aggregation",
                f"`{query.model}` combines stream rows with the result of an aggregation in complete mode",
                "each batch writes the whole result of the aggregation, but only the new rows of the stream",
                "write them to two sinks, or aggregate both",
                Severity.WARNING,
            )


def _is_kept(node: Node) -> bool:
    return any(map(is_streaming_aggregate, node.walk()))


@rule("set-without-time", severity=Severity.WARNING)
def sets_without_time(query: Query) -> Iterator[QueryProblem]:
    """A grouping set without the event time has no watermark, so append mode never emits its groups."""
    if query.mode != "append":
        return
    for node in query.all(Aggregate):
        times = [key for key in node.keys if key.is_column and key.column.event_time]
        if node.streaming and times and not any(key.in_every_set for key in times):
            yield QueryProblem(
                node.where,
                "set-without-time",
                f"some grouping sets leave out `{times[0].text}`, so their rows are never emitted",
                "append mode emits a group when the watermark passes its event time, and these groups have none",
                f"include `{times[0].text}` in every set, as in group by {times[0].text}, rollup(...); or write "
                "one aggregation per set",
                Severity.WARNING,
            )


@rule("session-window")
def session_windows(query: Query) -> Iterator[QueryProblem]:
    """Session windows merge, so they cannot be updated; Spark also needs another key."""
    for node in query.all(Aggregate):
        if not node.streaming or not node.session:
            continue
        if query.mode == "update":
            yield QueryProblem(
                node.where,
                "session-window",
                "session windows are not possible in update mode",
                "a new row can merge two sessions into one, and rows already written cannot be removed",
                "use output_mode='append' with a watermark, or 'complete'",
            )
        elif len(node.keys) == 1:
            yield QueryProblem(
                node.where,
                "session-window",
                "a session window is the only grouping key of an aggregation",
                "Spark does not support sessions over all rows of a stream",
                "group by another column too, such as the user or the device",
            )


RULES = (
    unfinished_groups,
    subtractions,
    complete_without_aggregation,
    distinct_functions,
    stateful_after_aggregation,
    rows_beside_aggregation,
    sets_without_time,
    session_windows,
)
