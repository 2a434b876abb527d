"""Rules on operators that streams do not support: sorts, limits, samples, window functions, set operations."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.functions.known import AGGREGATES
from sqlstream.compiler.flow.nodes import (
    Aggregate,
    CteReference,
    Limit,
    Node,
    Recursion,
    Sample,
    SetOperation,
    Sort,
    WindowCall,
    WindowFunctions,
)
from sqlstream.compiler.flow.types.values import DATETIMES, TIMESTAMP, kind
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule
from sqlstream.errors import Severity

RANKING = frozenset({"row_number", "rank", "dense_rank"})
"""Functions that most often look for the latest row of a key."""


@rule("window-function")
def window_functions(query: Query) -> Iterator[QueryProblem]:
    """Functions with OVER need rows that have not arrived yet."""
    for node in query.all(WindowFunctions):
        if not node.streaming:
            continue
        for call in node.functions:
            yield QueryProblem(
                call.where,
                "window-function",
                f"`{call.name}` with OVER cannot run on a stream",
                "it compares a row with other rows of its partition, which may arrive later",
                _without_over(call, node.columns),
            )


def _without_over(call: WindowCall, columns: Columns | None) -> str:
    """How the model could say it with an aggregation, in its own names; `columns` are those that it may use."""
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
    """Whether the first of ORDER BY is a time, as far as that can be known."""
    if columns is None or not call.order:
        return bool(call.order)
    name = call.order[0].replace("`", "").rpartition(".")[2].lower()
    types = {column.name.lower(): column.type for column in columns}
    return name in types and (types[name] is None or kind(types[name]) in DATETIMES)


@rule("stream-sort")
def sorts(query: Query) -> Iterator[QueryProblem]:
    """A sort needs all rows, and only complete mode writes all of them."""
    for node in query.all(Sort):
        if not node.streaming or (query.mode == "complete" and _has_aggregate(node)):
            continue
        yield QueryProblem(
            node.where,
            "stream-sort",
            f"`{query.model}` sorts a stream",
            "a stream never ends, so its rows have no final order; only complete mode writes the whole result "
            "of an aggregation each time",
            "remove ORDER BY and sort when you read the output; for the first or last row of a key, use max_by "
            "or min_by",
        )


@rule("stream-limit")
def limits(query: Query) -> Iterator[QueryProblem]:
    """Spark refuses LIMIT in update mode, and OFFSET always."""
    for node in query.all(Limit):
        if node.is_offset:
            yield QueryProblem(
                node.where,
                "stream-limit",
                f"`{query.model}` uses OFFSET on a stream",
                "Spark does not support OFFSET in a streaming query",
                "remove it",
            )
        elif node.streaming and query.mode == "update":
            yield QueryProblem(
                node.where,
                "stream-limit",
                f"`{query.model}` uses LIMIT in update mode",
                "rows that were emitted can still change in update mode, so Spark cannot count them",
                "remove it, or use another output_mode",
            )


@rule("stream-limit", severity=Severity.WARNING)
def lasting_limits(query: Query) -> Iterator[QueryProblem]:
    """In append mode LIMIT counts the rows of all batches and restarts; then the query emits nothing more."""
    if query.mode != "append":
        return
    for node in query.all(Limit):
        if node.streaming and not node.is_offset:
            yield QueryProblem(
                node.where,
                "stream-limit",
                f"`{query.model}` writes no more rows after it reaches its LIMIT",
                "LIMIT counts the rows of all batches over the whole life of the checkpoint",
                "remove it; to look at a few rows, use `sqlstream show`",
                Severity.WARNING,
            )


@rule("stream-sample")
def samples(query: Query) -> Iterator[QueryProblem]:
    """Spark cannot sample a stream."""
    for node in query.all(Sample):
        if node.streaming:
            yield QueryProblem(
                node.where,
                "stream-sample",
                f"`{query.model}` samples a stream",
                "Spark can sample only static tables",
                "use a filter, for example where rand() < 0.1",
            )


@rule("stream-set-operation")
def set_operations(query: Query) -> Iterator[QueryProblem]:
    """Streams support UNION ALL with other streams and EXCEPT with a static right side, but not INTERSECT."""
    for node in query.all(SetOperation):
        left, right = (child.streaming for child in node.children)
        if node.kind == "union" and left != right:
            why = "each batch would read the whole static table again and emit its rows again"
            fix = "make both inputs streams, or join the static table"
            yield _set_problem(node, "UNION of a stream and a static table", why, fix)
        elif node.kind == "except" and right:
            why = "Spark can tell that a row is not in the stream only when the stream ends, which never happens"
            fix = "use a left anti join with a static table, or a filter"
            yield _set_problem(node, "EXCEPT of a stream", why, fix)
        elif node.kind == "intersect" and (left or right):
            why = "INTERSECT emits each row once, which a single batch cannot guarantee"
            yield _set_problem(node, "INTERSECT of a stream", why, "use a left semi join on all columns")


def _set_problem(node: Node, what: str, why: str, fix: str) -> QueryProblem:
    return QueryProblem(node.where, "stream-set-operation", f"{what} is not possible", why, fix)


@rule("stream-subquery")
def subqueries(query: Query) -> Iterator[QueryProblem]:
    """A subquery in an expression must be static."""
    for node in query.nodes:
        for inner in node.subqueries:
            if inner.streaming:
                yield QueryProblem(
                    inner.where,
                    "stream-subquery",
                    "a subquery in an expression reads a stream",
                    "IN, EXISTS and scalar subqueries need all of their rows at once",
                    "join the stream instead: use an inner join, a left semi join for IN and EXISTS, or a left "
                    "join that keeps the rows without a match for NOT IN and NOT EXISTS",
                )


@rule("row-id")
def row_ids(query: Query) -> Iterator[QueryProblem]:
    """Spark refuses functions that number rows anywhere in the query, also in static parts."""
    for node in query.all(Node):
        for call in node.row_ids:
            yield QueryProblem(
                call.where,
                "row-id",
                f"`{call.name}` is not allowed in a streaming query",
                "it numbers the rows of each batch from 0, so every batch would repeat the same numbers",
                "use uuid() if each row needs an id, or a key that the rows already have",
            )


@rule("stream-recursion")
def recursions(query: Query) -> Iterator[QueryProblem]:
    """Spark runs a recursive CTE as a batch, so it cannot read a stream; an unused CTE does not run."""
    for node in query.read():
        if isinstance(node, Recursion) and node.streaming:
            yield QueryProblem(
                node.where,
                "stream-recursion",
                "a recursive CTE reads a stream",
                "Spark repeats a recursive query until it returns no more rows, and supports this only for "
                "static tables",
                "keep the stream out of the CTE, and join it with the result of the CTE",
            )


def _has_aggregate(node: Node) -> bool:
    return any(isinstance(below, Aggregate) and below.streaming for below in node.walk(CteReference))


RULES = (window_functions, sorts, limits, samples, set_operations, subqueries, row_ids, recursions)
