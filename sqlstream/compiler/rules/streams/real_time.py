"""What Spark refuses under a real-time trigger: `RealTimeModeAllowlist` and the error classes of Spark 4.3."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Aggregate, CteReference, Deduplicate, Join, Node, Scan, SetOperation, View
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.streams.continuous import hints_named
from sqlstream.project.formats.formats import format_of

CODE = "real-time-trigger"
REFUSED_HINTS = frozenset({"COALESCE", "REPARTITION_BY_RANGE"})


@rule("real-time-trigger")
def modes(query: Query) -> Iterator[QueryProblem]:
    """Real-time mode writes rows as they arrive, so it needs update mode."""
    if query.trigger == "real_time" and query.mode != "update":
        why = "Spark writes each row as soon as it arrives, so it supports only update mode here"
        yield _problem(query, query.node, f"streams in {query.mode} mode", why, "use output_mode='update'")


@rule("real-time-trigger")
def sources_and_sinks(query: Query) -> Iterator[QueryProblem]:
    """Real-time mode supports only a few sources and sinks."""
    if query.trigger != "real_time":
        return
    for node in query.all(Scan):
        name = query.formats.get(node.node_id or "", "")
        if node.stream and query.trigger in format_of(name).refused_triggers:
            why, fix = "it reads rows in batches", "read from Kafka, or use another trigger"
            yield _problem(query, query.node, f"reads a {name} source", why, fix)
    if query.trigger in format_of(query.sink).refused_triggers:
        why, fix = "Spark does not support this sink here", "write to Kafka or the console"
        yield _problem(query, query.node, f"writes to a {query.sink} sink", why, fix)


@rule("real-time-trigger")
def operators(query: Query) -> Iterator[QueryProblem]:
    """Real-time mode has no joins of streams, unions of a CTE with itself or over an aggregation, and EXCEPT."""
    if query.trigger != "real_time":
        return
    for node in query.all(Join):
        if all(child.streaming for child in node.children):
            yield _problem(
                query, node, "joins two streams", "the join waits for rows of both streams", "use another trigger"
            )
    for union in query.all(SetOperation):
        if union.kind == "except" and union.streaming:
            why, fix = "its state for each row is written only at the end of a batch", "use a left anti join"
            yield _problem(query, union, "uses EXCEPT", why, fix)
        if union.kind != "union":
            continue
        if any(isinstance(item, Aggregate) and item.streaming for item in union.walk()):
            why, fix = "a real-time query cannot have a stateful operator below a union", "aggregate after the union"
            yield _problem(query, union, "uses UNION on the result of an aggregation", why, fix)
        left, right = ({id(tree) for tree in _ctes(child)} for child in union.children)
        if left & right:
            why, fix = "Spark cannot tell two readers of one source apart", "repeat the query of the CTE in both places"
            yield _problem(query, union, "uses UNION on a CTE with itself", why, fix)


@rule("real-time-trigger")
def deduplications(query: Query) -> Iterator[QueryProblem]:
    """Real-time mode does not support deduplication within a watermark."""
    for node in query.all(Deduplicate) if query.trigger == "real_time" else ():
        if node.streaming and node.within:
            why, fix = "Spark supports deduplication only without a watermark", "use another trigger"
            yield _problem(query, node, "deduplicates within a watermark", why, fix)


def _ctes(node: Node) -> Iterator[Node]:
    """The trees of the CTEs that stream and are read in `node`; of a model, each reference has readers of its own."""
    return (item.children[0] for item in node.walk(View) if isinstance(item, CteReference) and item.streaming)


@rule("real-time-trigger")
def static_joins(query: Query) -> Iterator[QueryProblem]:
    """In real-time mode a join with a static table needs an equality, because each task looks rows up by key."""
    if query.trigger != "real_time":
        return
    unclear = query.below(lambda hints: hints.may_equate)
    for node in query.all(Join):
        sides = [child.streaming for child in node.children]
        has_key = node.kind != "cross" and node.has_equality is not False
        if any(sides) and not all(sides) and not has_key and id(node) not in unclear:
            why, fix = "Spark looks up rows by key", "add a condition such as a.id = b.id"
            yield _problem(query, node, "joins a static table without an equality", why, fix)


@rule("real-time-trigger")
def refused_hints(query: Query) -> Iterator[QueryProblem]:
    """Real-time mode runs all tasks at the same time, so some partitioning hints are not allowed on streams."""
    if query.trigger != "real_time" or not all(scan.stream for scan in query.all(Scan)):
        return
    if any(node.subqueries for node in query.nodes):
        return
    for text, offset, name in hints_named(query, REFUSED_HINTS):
        message = f"`{query.model}` uses the hint {name} with a real-time trigger"
        why, fix = "Spark does not support this operator here", "remove it, or use REPARTITION"
        yield QueryProblem(text.at(offset), CODE, message, why, fix)


def _problem(query: Query, node: Node, what: str, why: str, fix: str) -> QueryProblem:
    return QueryProblem(node.where, CODE, f"`{query.model}` {what} with a real-time trigger", why, fix)


RULES = (modes, sources_and_sinks, operators, deduplications, static_joins, refused_hints)
