"""Rules on aggregations: when they emit their rows, and which operators can follow."""

from __future__ import annotations

import re

from sqlstream.compiler.flow.nodes import Aggregate, Call, CteReference, Deduplicate, Node, SetOperation, Sort
from sqlstream.compiler.rules.query import (
    Problems,
    Query,
    is_stateful,
    is_streaming_aggregate,
    operator_rule,
    query_rule,
)
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.rules.streams.missing_watermarks import explain_groups, upstream_hint, window_upstream
from sqlstream.compiler.sql.edits import Where
from sqlstream.errors import Severity
from sqlstream.project.types.data_types import Array, DataType, Primitive, Struct

_DISTINCT = re.compile(r".*?\(\s*DISTINCT\b\s*", re.IGNORECASE)
"""The part of a call with DISTINCT before its arguments."""

UNEQUAL_BYTES = ("_LCASE", "_CI", "_AI", "_RTRIM")
"""Parts of the names of collations under which texts with different bytes are equal."""


@query_rule("append-without-watermark", mode="append")
def unfinished_groups(query: Query) -> Problems:
    """In append mode a group is emitted when the watermark passes it, so a key needs a watermark."""
    # PIVOT makes two aggregations of one place in the SQL, which get one finding.
    for node in {node.where: node for node in query.all(Aggregate)}.values():
        if node.streaming and _lacks_watermark(node):
            what = {"distinct": "SELECT DISTINCT", "pivot": "PIVOT"}.get(node.kind, "an aggregation")
            why, fix, places = window_upstream(node) or _in_its_own_select(node, query)
            message = f"{what} in append mode has no watermark on its grouping columns"
            yield QueryProblem(node.where, message, why, fix, origins=places)


def _lacks_watermark(node: Aggregate) -> bool:
    """Returns whether no key has a watermark; false if the columns are not known."""
    if node.children[0].columns is None or (node.kind == "distinct" and node.columns is None):
        return False
    return not any(key.is_column and (key.column.may_carry or key.column.event_time) for key in node.keys)


def _in_its_own_select(node: Aggregate, query: Query) -> tuple[str, str, tuple[Where, ...]]:
    why, fix = explain_groups(node, query)
    upstream, places = upstream_hint(node) if "WATERMARK(" in fix else ("", ())
    return why, fix + upstream, places


@operator_rule("append-without-watermark", SetOperation, mode="append")
def subtractions(_: Query, node: SetOperation) -> Problems:
    """EXCEPT deduplicates rows as DISTINCT does, so in append mode it needs a watermark too."""
    columns = node.children[0].columns
    left, right = (child.streaming for child in node.children)
    without = columns is not None and not any(column.event_time for column in columns)
    if node.kind == "except" and left and not right and without:
        yield QueryProblem(
            node.where,
            "EXCEPT in append mode has no watermark on its columns",
            "EXCEPT keeps each distinct row once, and emits it only when the watermark passes it",
            "use a left anti join with the static table, which needs no watermark",
        )


@query_rule("complete-without-aggregation", mode="complete")
def complete_without_aggregation(query: Query) -> Problems:
    """Complete mode writes the whole result each time, and only an aggregation keeps it."""
    if any(node.columns is None or is_streaming_aggregate(node) for node in query.nodes):
        return
    yield QueryProblem(
        query.node.where,
        f"`{query.model}` streams in complete mode without a streaming aggregation",
        "complete mode writes the whole result in each batch, which Spark keeps only for aggregations",
        f"use output_mode='append'{', and delete the sort' if any(sort.streaming for sort in query.all(Sort)) else ''}",
    )


@operator_rule("distinct-aggregate", Aggregate)
def distinct_functions(_: Query, node: Aggregate) -> Problems:
    """Aggregate functions with DISTINCT would keep every value forever."""
    return (
        QueryProblem(
            call.where,
            f"`{call.text}` cannot run on a stream",
            "Spark does not support DISTINCT in aggregate functions of a streaming query",
            f"{_without_distinct(call)}; or use SELECT DISTINCT in an upstream model, with a watermark",
        )
        for call in node.functions
        if call.distinct
    )


def _without_distinct(call: Call) -> str:
    values = _DISTINCT.sub("", call.text, count=1).removesuffix(")")
    values = f"struct({values})" if "," in values else values
    if call.name == "count":
        return f"use approx_count_distinct({values}), or for few values size(collect_set({values}))"
    return f"use collect_set({values}), and compute the result from it"


@query_rule("several-aggregations")
def stateful_after_aggregation(query: Query) -> Problems:
    """Outside append mode an aggregation updates emitted rows, so no stateful operator can follow."""
    if query.mode == "append":
        return
    stateful = [node for node in query.nodes if is_stateful(node)]
    refused = next((node for node in stateful if _aggregates_below(node, CteReference)), None)
    if refused is not None:
        yield _after_aggregation(refused, query, Severity.ERROR)
        return
    # Spark does not look behind the name of a CTE, and then runs the query with a wrong result
    accepted = [node for node in (*stateful, *query.all(Deduplicate)) if _aggregates_below(node)]
    for node in accepted[:1]:
        yield _after_aggregation(node, query, Severity.WARNING)


def _aggregates_below(node: Node, *ends: type[Node]) -> bool:
    return any(is_streaming_aggregate(item) for child in node.children for item in child.walk(*ends))


def _after_aggregation(node: Node, query: Query, severity: Severity) -> QueryProblem:
    if isinstance(node, Aggregate) and node.kind == "pivot" and node.children[0].where == node.where:
        return _pivot(node, query, severity)
    if isinstance(node, Deduplicate):
        return QueryProblem(
            node.where,
            f"`{query.model}` deduplicates the result of an aggregation in {query.mode} mode",
            "in this mode an updated row is emitted again, and the deduplication keeps only the first row with the "
            f"same {', '.join(node.keys)}",
            "deduplicate before the aggregation, or use output_mode='append' with a watermark",
            severity,
        )
    given = "its whole result in each batch" if query.mode == "complete" else "a row again each time it changes"
    return QueryProblem(
        node.where,
        f"`{query.model}` aggregates or joins the result of an aggregation in {query.mode} mode",
        f"in this mode the first aggregation emits {given}, and the next operator counts these as new rows",
        "use output_mode='append' with a watermark, or write the first result to a sink and read it from there",
        severity,
    )


def _pivot(node: Aggregate, query: Query, severity: Severity) -> QueryProblem:
    first = node.children[0]
    call = first.functions[0].text if isinstance(first, Aggregate) and first.functions else "sum(...)"
    by = first.keys[-1].text if isinstance(first, Aggregate) and first.keys else "column"
    return QueryProblem(
        node.where,
        f"PIVOT is not possible in {query.mode} mode",
        f"Spark computes `{call}` for each `{by}`, then uses a second aggregation to combine the values into one row",
        f"write an aggregate for each value: {call} filter (where {by} = ...) as name, with GROUP BY",
        severity,
    )


@operator_rule("rows-beside-aggregation", SetOperation, mode="complete", severity=Severity.WARNING)
def rows_beside_aggregation(query: Query, node: SetOperation) -> Problems:
    """In complete mode only an aggregation keeps its rows; rows from the other side of a UNION ALL are emitted once."""
    left, right = (any(map(is_streaming_aggregate, child.walk())) for child in node.children)
    if node.kind == "union" and left != right:
        yield QueryProblem(
            node.where,
            f"`{query.model}` combines stream rows with the result of an aggregation in complete mode",
            "each batch writes the whole result of the aggregation, but only the new rows of the stream",
            "write them to two sinks, or aggregate both",
        )


@operator_rule("set-without-time", Aggregate, mode="append", severity=Severity.WARNING)
def sets_without_time(_: Query, node: Aggregate) -> Problems:
    """A grouping set without the event time has no watermark, so append mode never emits its groups."""
    times = [key for key in node.keys if key.is_column and key.column.event_time]
    if times and not any(key.in_every_set for key in times):
        time = times[0].text
        yield QueryProblem(
            node.where,
            f"some grouping sets leave out `{time}`, so their rows are never emitted",
            "append mode emits a group when the watermark passes its event time, and these groups have none",
            f"include `{time}` in every set, as in group by {time}, rollup(...); or write one aggregation per set",
        )


@operator_rule("session-window", Aggregate)
def session_windows(query: Query, node: Aggregate) -> Problems:
    """Session windows merge, so they cannot be updated; Spark also needs another key."""
    if node.session and query.mode == "update":
        yield QueryProblem(
            node.where,
            "session windows are not possible in update mode",
            "a new row can merge two sessions into one, and rows already written cannot be removed",
            "use output_mode='append' with a watermark, or 'complete'",
        )
    elif node.session and len(node.keys) == 1:
        yield QueryProblem(
            node.where,
            "a session window is the only grouping key of an aggregation",
            "Spark does not support sessions over all rows of a stream",
            "group by another column too, such as the user or the device",
        )


@operator_rule("type-mismatch", Aggregate)
def collated_keys(_: Query, node: Aggregate) -> Problems:
    """A state store compares the bytes of keys, so equal keys must have equal bytes
    (STATE_STORE_UNSUPPORTED_OPERATION_BINARY_INEQUALITY).
    """
    collations = ((key, _collation(key.column.type)) for key in node.keys)
    return (
        QueryProblem(
            key.where,
            f"`{key.text}` has the collation {collation}, so a stream cannot be grouped by it",
            "Spark looks up keys in the state by their bytes, and under this collation equal texts can have "
            "different bytes",
            f"group by {key.text} collate UTF8_BINARY, or to ignore case, by lower({key.text} collate UTF8_BINARY)",
        )
        for key, collation in collations
        if collation is not None
    )


def _collation(type_: DataType | None) -> str | None:
    """Returns the first collation in a type under which texts with different bytes are equal."""
    if isinstance(type_, Primitive) and type_.collation:
        return type_.collation if any(part in type_.collation.upper() for part in UNEQUAL_BYTES) else None
    parts: list[DataType] = []
    if isinstance(type_, Array):
        parts = [type_.element]
    elif isinstance(type_, Struct):
        parts = [field.type for field in type_.fields]
    return next((found for found in map(_collation, parts) if found is not None), None)
