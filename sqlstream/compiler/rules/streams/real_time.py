"""What Spark refuses under a real-time trigger: `RealTimeModeAllowlist` and the error classes of Spark 4.3."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import CteReference, Deduplicate, Join, Node, Scan, SetOperation, View
from sqlstream.compiler.rules.query import (
    Problems,
    Query,
    QueryProblem,
    is_stream_join,
    is_streaming_aggregate,
    operator_rule,
    query_rule,
)
from sqlstream.compiler.rules.streams.continuous import hints_named, refused_sources
from sqlstream.compiler.sql.edits import Where
from sqlstream.project.formats.formats import format_of

CODE = "real-time-trigger"
REFUSED_HINTS = frozenset({"COALESCE", "REPARTITION_BY_RANGE"})


@query_rule(CODE, trigger="real_time")
def modes(query: Query) -> Problems:
    """Real-time mode writes rows as they arrive, so it needs update mode."""
    if query.mode != "update":
        why = "Spark writes each row as soon as it arrives, so it supports only update mode here"
        yield _problem(query, query.node.where, f"streams in {query.mode} mode", why, "use output_mode='update'")


@query_rule(CODE, trigger="real_time")
def sources_and_sinks(query: Query) -> Problems:
    """Real-time mode supports only a few sources and sinks."""
    for name in refused_sources(query):
        why, fix = "it reads rows in batches", "read from Kafka, or use another trigger"
        yield _problem(query, query.node.where, f"reads a {name} source", why, fix)
    if query.trigger in format_of(query.sink).refused_triggers:
        why, fix = "Spark does not support this sink here", "write to Kafka or the console"
        yield _problem(query, query.node.where, f"writes to a {query.sink} sink", why, fix)


@operator_rule(CODE, Join, trigger="real_time")
def stream_joins(query: Query, node: Join) -> Problems:
    """Real-time mode has no joins of two streams."""
    if is_stream_join(node):
        why, fix = "the join waits for rows of both streams", "use another trigger"
        yield _problem(query, node.where, "joins two streams", why, fix)


@operator_rule(CODE, SetOperation, static=True, trigger="real_time")
def set_operations(query: Query, node: SetOperation) -> Problems:
    """Real-time mode has no EXCEPT, and no unions of a CTE with itself or over an aggregation."""
    if node.kind == "except" and node.streaming:
        why, fix = "its state for each row is written only at the end of a batch", "use a left anti join"
        yield _problem(query, node.where, "uses EXCEPT", why, fix)
    if node.kind != "union":
        return
    if any(map(is_streaming_aggregate, node.walk())):
        why, fix = "a real-time query cannot have a stateful operator below a union", "aggregate after the union"
        yield _problem(query, node.where, "uses UNION on the result of an aggregation", why, fix)
    left, right = ({id(tree) for tree in _ctes(child)} for child in node.children)
    if left & right:
        why, fix = "Spark cannot tell two readers of one source apart", "repeat the query of the CTE in both places"
        yield _problem(query, node.where, "uses UNION on a CTE with itself", why, fix)


def _ctes(node: Node) -> Iterator[Node]:
    """Yields the trees of the streaming CTEs that `node` reads. Models are left out: each reference to a model has its
    own readers.
    """
    return (item.children[0] for item in node.walk(View) if isinstance(item, CteReference) and item.streaming)


@operator_rule(CODE, Deduplicate, trigger="real_time")
def deduplications(query: Query, node: Deduplicate) -> Problems:
    """Real-time mode does not support deduplication within a watermark."""
    if node.within:
        why, fix = "Spark supports deduplication only without a watermark", "use another trigger"
        yield _problem(query, node.where, "deduplicates within a watermark", why, fix)


@query_rule(CODE, trigger="real_time")
def static_joins(query: Query) -> Problems:
    """In real-time mode a join with a static table needs an equality, because each task looks rows up by key."""
    unclear = query.below(lambda hints: hints.may_equate)
    for node in query.all(Join):
        has_key = node.kind != "cross" and node.has_equality is not False
        if node.streaming and not is_stream_join(node) and not has_key and id(node) not in unclear:
            why, fix = "Spark looks up rows by key", "add a condition such as a.id = b.id"
            yield _problem(query, node.where, "joins a static table without an equality", why, fix)


@query_rule(CODE, trigger="real_time")
def refused_hints(query: Query) -> Problems:
    """Real-time mode runs all tasks at the same time, so some partitioning hints are not allowed on streams."""
    if not all(scan.stream for scan in query.all(Scan)) or any(node.subqueries for node in query.nodes):
        return
    for where, name in hints_named(query, REFUSED_HINTS):
        why, fix = "Spark does not support this operator here", "remove it, or use REPARTITION"
        yield _problem(query, where, f"uses the hint {name}", why, fix)


def _problem(query: Query, where: Where, what: str, why: str, fix: str) -> QueryProblem:
    return QueryProblem(where, f"`{query.model}` {what} with a real-time trigger", why, fix)
