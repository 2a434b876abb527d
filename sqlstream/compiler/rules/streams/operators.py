"""Rules on operators that streams do not support: sorts, limits, samples, window functions, set operations."""

from __future__ import annotations

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.functions import AGGREGATES
from sqlstream.compiler.flow.nodes import (
    CteReference,
    Limit,
    Recursion,
    SetOperation,
    Sort,
    TableSample,
    WindowCall,
    WindowFunctions,
)
from sqlstream.compiler.flow.type_rules import DATETIMES, TIMESTAMP, kind
from sqlstream.compiler.rules.query import Problems, Query, is_streaming_aggregate, operator_rule, query_rule
from sqlstream.compiler.rules.rule import QueryProblem

RANKING = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that most often select the latest row of a key."""


@operator_rule("window-function", WindowFunctions)
def window_functions(_: Query, node: WindowFunctions) -> Problems:
    """Functions with OVER need rows that have not arrived yet."""
    return (
        QueryProblem(
            call.where,
            f"`{call.name}` with OVER cannot run on a stream",
            "it compares a row with other rows of its partition, which may arrive later",
            _without_over(call, node.columns),
        )
        for call in node.functions
    )


def _without_over(call: WindowCall, columns: Columns | None) -> str:
    """Returns an equivalent aggregation in the model's own names; `columns` are the columns that it can use."""
    keys = ", ".join(call.partition)
    group = f"group by {keys}" if keys else "without GROUP BY"
    is_time = _begins_with_time(call, columns)
    if call.name in RANKING and len(call.order) == 1:
        which, function = ("latest", "max_by") if call.descends else ("first", "min_by")
        if not is_time:
            which = "largest" if call.descends else "smallest"
        of_each = f" of each {keys}" if keys else ""
        fix = f"for the {which} row{of_each}: select {function}(struct(*), {call.order[0]}) as {which} ... {group}"
        return f"{fix}; or set deduplicate: [{keys}] in the model's configuration" if which == "first" and keys else fix
    marked = [column.in_sql for column in columns or () if column.event_time]
    times = [column.in_sql for column in columns or () if column.type == TIMESTAMP]
    time = call.order[0] if is_time else next(iter([*marked, *times, *call.order]), "event_time")
    by_window = "group by " + ", ".join([f"window({time}, '1 hour')", *call.partition])
    if call.name in AGGREGATES:
        return f"aggregate instead: {call.text[: call.text.upper().index(' OVER')]} ... {by_window}"
    return f"collect the rows and compare them there: array_sort(collect_list(struct({time}, *))) ... {by_window}"


def _begins_with_time(call: WindowCall, columns: Columns | None) -> bool:
    """Returns whether the first column of ORDER BY is a time, or may be one."""
    if columns is None or not call.order:
        return bool(call.order)
    name = call.order[0].replace("`", "").rpartition(".")[2].lower()
    types = {column.name.lower(): column.type for column in columns}
    return name in types and (types[name] is None or kind(types[name]) in DATETIMES)


@operator_rule("stream-sort", Sort)
def sorts(query: Query, node: Sort) -> Problems:
    """A sort needs all rows, and only complete mode writes all of them."""
    if query.mode == "complete" and any(map(is_streaming_aggregate, node.walk(CteReference))):
        return
    yield QueryProblem(
        node.where,
        f"`{query.model}` sorts a stream",
        "a stream never ends, so its rows have no final order; only complete mode writes the whole result of an "
        "aggregation each time",
        "remove ORDER BY and sort when you read the output; for the first or last row of a key, use max_by or min_by",
    )


@operator_rule("stream-limit", Limit, static=True)
def limits(query: Query, node: Limit) -> Problems:
    """Spark refuses LIMIT in update mode, and OFFSET always."""
    if node.is_offset:
        yield QueryProblem(
            node.where,
            f"`{query.model}` uses OFFSET on a stream",
            "Spark does not support OFFSET in a streaming query",
            "remove it",
        )
    elif node.streaming and query.mode == "update":
        yield QueryProblem(
            node.where,
            f"`{query.model}` uses LIMIT in update mode",
            "rows that were emitted can still change in update mode, so Spark cannot count them",
            "remove it, or use another output_mode",
        )


@operator_rule("stream-sample", TableSample)
def samples(query: Query, node: TableSample) -> Problems:
    """Spark cannot sample a stream."""
    yield QueryProblem(
        node.where,
        f"`{query.model}` samples a stream",
        "Spark can sample only static tables",
        "use a filter, for example where rand() < 0.1",
    )


@operator_rule("stream-set-operation", SetOperation)
def set_operations(_: Query, node: SetOperation) -> Problems:
    """Streams support UNION ALL with other streams and EXCEPT with a static right side, but not INTERSECT."""
    left, right = (child.streaming for child in node.children)
    if node.kind == "union" and left != right:
        what = "UNION of a stream and a static table"
        why = "each batch would read the whole static table again and emit its rows again"
        fix = "make both inputs streams, or join the static table"
    elif node.kind == "except" and right:
        what = "EXCEPT of a stream"
        why = "Spark can tell that a row is not in the stream only when the stream ends, which never happens"
        fix = "use a left anti join with a static table, or a filter"
    elif node.kind == "intersect":
        what = "INTERSECT of a stream"
        why = "INTERSECT emits each row once, which a single batch cannot guarantee"
        fix = "use a left semi join on all columns"
    else:
        return
    yield QueryProblem(node.where, f"{what} is not possible", why, fix)


@query_rule("stream-subquery")
def subqueries(query: Query) -> Problems:
    """A subquery in an expression must be static."""
    return (
        QueryProblem(
            inner.where,
            "a subquery in an expression reads a stream",
            "IN, EXISTS and scalar subqueries need all of their rows at once",
            "join the stream instead: use an inner join, a left semi join for IN and EXISTS, or a left "
            "join that keeps the rows without a match for NOT IN and NOT EXISTS",
        )
        for node in query.nodes
        for inner in node.subqueries
        if inner.streaming
    )


@query_rule("row-id")
def row_ids(query: Query) -> Problems:
    """Spark refuses functions that number rows anywhere in the query, also in static parts."""
    return (
        QueryProblem(
            call.where,
            f"`{call.name}` is not allowed in a streaming query",
            "it numbers the rows of each batch from 0, so every batch would repeat the same numbers",
            "use uuid() if each row needs an id, or a key that the rows already have",
        )
        for node in query.nodes
        for call in node.row_ids
    )


@query_rule("stream-recursion")
def recursions(query: Query) -> Problems:
    """Spark runs a recursive CTE as a batch, so it cannot read a stream; an unused CTE does not run."""
    return (
        QueryProblem(
            node.where,
            "a recursive CTE reads a stream",
            "Spark repeats a recursive query until it returns no more rows, and supports this only for static tables",
            "keep the stream out of the CTE, and join it with the result of the CTE",
        )
        for node in query.executed()
        if isinstance(node, Recursion) and node.streaming
    )
