"""What Spark refuses under a real-time trigger: `RealTimeModeAllowlist` and the error classes of Spark 4.3."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Aggregate, Join, Node, Scan, SetOperation
from sqlstream.compiler.rules.continuous import MICRO_BATCH_SOURCES
from sqlstream.compiler.rules.outputs import FILE_FORMATS
from sqlstream.compiler.rules.query import Query, QueryProblem
from sqlstream.compiler.rules.rule import rule

CODE = "real-time-trigger"
REFUSED_SOURCES = MICRO_BATCH_SOURCES | {"rate", "socket"}
REFUSED_SINKS = FILE_FORMATS | {"noop"}
"""Sources and sinks of Spark's own that are not among those which it allows: of the others, Kafka is the one to use."""


@rule("real-time-trigger")
def modes(query: Query) -> Iterator[QueryProblem]:
    """Rows are written as they come, so only update mode has a meaning."""
    if query.trigger == "real_time" and query.mode != "update":
        why = "Spark takes update mode only there, since a row is written as soon as it is there"
        yield _problem(query, query.node, f"streams in {query.mode} mode", why, "use output_mode='update'")


@rule("real-time-trigger")
def sources_and_sinks(query: Query) -> Iterator[QueryProblem]:
    """Few sources and sinks can be read and written row by row."""
    if query.trigger != "real_time":
        return
    for node in query.all(Scan):
        name = query.formats.get(node.node_id or "", "")
        if node.stream and name in REFUSED_SOURCES:
            why, fix = "it gives its rows in batches", "read from Kafka, or use another trigger"
            yield _problem(query, query.node, f"reads a {name} source", why, fix)
    if query.sink in REFUSED_SINKS:
        why, fix = "it is not among the sinks that Spark allows there", "write to Kafka or the console"
        yield _problem(query, query.node, f"writes to a {query.sink} sink", why, fix)


@rule("real-time-trigger")
def operators(query: Query) -> Iterator[QueryProblem]:
    """Joins of streams, and unions of one stream with itself or over an aggregation, are not allowed."""
    if query.trigger != "real_time":
        return
    for node in query.all(Join):
        if all(child.streaming for child in node.children):
            yield _problem(query, node, "joins two streams", "the join waits for rows of both", "use another trigger")
    for union in query.all(SetOperation):
        below = list(union.walk())
        read = Counter(item.node_id for item in below if isinstance(item, Scan) and item.stream)
        if any(isinstance(item, Aggregate) and item.streaming for item in below):
            why, fix = "nothing stateful may stand below a union there", "aggregate above the union"
            yield _problem(query, union, "unites the result of an aggregation", why, fix)
        if any(count > 1 for count in read.values()):
            why, fix = "Spark cannot tell the readers of one source apart there", "declare a second source"
            yield _problem(query, union, "unites a stream with itself", why, fix)


def _problem(query: Query, node: Node, what: str, why: str, fix: str) -> QueryProblem:
    return QueryProblem(node.where, CODE, f"`{query.model}` {what} under a real-time trigger", why, fix)


RULES = (modes, sources_and_sinks, operators)
