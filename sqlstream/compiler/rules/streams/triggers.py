"""Rules on triggers: what Spark refuses under a continuous trigger (`UnsupportedOperationChecker.checkForContinuous` of
Spark 4.3), and under a real-time trigger (`RealTimeModeAllowlist` and its error classes).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlstream.compiler.flow.nodes import (
    Aggregate,
    CteReference,
    Deduplicate,
    EventTimeWatermark,
    Generate,
    Join,
    Limit,
    Node,
    Scan,
    SetOperation,
    Sort,
    TableSample,
    View,
    WindowFunctions,
)
from sqlstream.compiler.rules.query import (
    Problems,
    Query,
    is_stream_join,
    is_streaming_aggregate,
    operator_rule,
    query_rule,
)
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.hints import read_hints
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.project.formats.formats import format_of

REFUSED_OPERATORS: dict[type[Node], str] = {
    Aggregate: "an aggregation",
    Deduplicate: "a deduplication",
    Generate: "a generator or LATERAL VIEW",
    Join: "a join",
    Limit: "LIMIT or OFFSET",
    TableSample: "a sample",
    SetOperation: "a set operation",
    Sort: "a sort",
    EventTimeWatermark: "a watermark",
    WindowFunctions: "a function with OVER",
}
"""The refused operators: all but projections and filters."""

PARTITIONING = frozenset({"COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE"})
NOW = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE", "NOW", "LOCALTIMESTAMP"})
"""Functions that return the current time."""


@query_rule("continuous-trigger", trigger="continuous")
def continuous_operators(query: Query) -> Problems:
    """A continuous query can only project and filter rows."""
    nodes = ((node, what) for kind, what in REFUSED_OPERATORS.items() for node in query.all(kind) if node.streaming)
    return (_continuous_problem(query, node.where, what, "it works on batches of rows") for node, what in nodes)


@query_rule("continuous-trigger", trigger="continuous")
def continuous_sources_and_sinks(query: Query) -> Problems:
    """Files are read and written in batches."""
    for name in refused_sources(query):
        yield _continuous_problem(
            query, query.node.where, f"a source of format {name}", "it can be read only in batches"
        )
    if query.trigger in format_of(query.sink).refused_triggers:
        yield _continuous_problem(
            query, query.node.where, f"a sink of format {query.sink}", "it can be written only in batches"
        )


def refused_sources(query: Query) -> Iterator[str]:
    """Yields the format of each stream that Spark does not read with the query's trigger."""
    sources = query.compiled.tables
    ids = (node.node_id or "" for node in query.all(Scan) if node.stream)
    formats = (sources[node_id].format for node_id in ids if node_id in sources)
    return (name for name in formats if query.trigger in format_of(name).refused_triggers)


@query_rule("continuous-trigger", trigger="continuous")
def present_time(query: Query) -> Problems:
    """A continuous query has no batch time for the current time; Spark does not check subqueries."""
    # The tokens do not show which of them belong to the subquery.
    if any(node.subqueries for node in query.nodes):
        return
    words = ((model, index, token) for model, tokens in query.texts.items() for index, token in enumerate(tokens))
    for model, index, token in words:
        if token.key in NOW and _is_called(query.texts[model], index):
            why = "its value is the time of the batch, and a continuous query has no batches"
            yield _continuous_problem(query, Where(model, token.start), f"`{token.text}`", why)


@query_rule("continuous-trigger", trigger="continuous")
def partitioning_hints(query: Query) -> Problems:
    """A continuous query cannot repartition rows."""
    why = "a continuous query does not move rows between partitions"
    return (
        _continuous_problem(query, where, f"the hint {name}", why) for where, name in hints_named(query, PARTITIONING)
    )


def hints_named(query: Query, names: Collection[str]) -> Iterator[tuple[Where, str]]:
    """Yields the place and the name of each hint of a query that has one of `names`, which are in capitals."""
    texts = query.texts.items()
    hints = ((model, item) for model, tokens in texts for hint in read_hints(tokens) for item in hint.items)
    for model, item in hints:
        name = item.name.name.upper()
        if name in names:
            yield Where(model, item.start), name


def _is_called(tokens: Tokens, index: int) -> bool:
    """Returns whether the word at `index` is a function with parentheses, not the name of a column."""
    following = tokens[index + 1].key if index + 1 < len(tokens) else ""
    return following == "(" and (index == 0 or tokens[index - 1].key != ".")


def _continuous_problem(query: Query, where: Where, what: str, why: str) -> QueryProblem:
    return QueryProblem(
        where,
        f"`{query.model}` uses {what} with a continuous trigger",
        f"Spark does not support it: {why}",
        "use a micro-batch trigger, such as trigger='1 second'",
    )


REFUSED_HINTS = frozenset({"COALESCE", "REPARTITION_BY_RANGE"})


@query_rule("real-time-trigger", trigger="real_time")
def modes(query: Query) -> Problems:
    """Real-time mode writes rows as they arrive, so it needs update mode."""
    if query.mode != "update":
        why = "Spark writes each row as soon as it arrives, so it supports only update mode here"
        yield _real_time_problem(
            query, query.node.where, f"streams in {query.mode} mode", why, "use output_mode='update'"
        )


@query_rule("real-time-trigger", trigger="real_time")
def real_time_sources_and_sinks(query: Query) -> Problems:
    """Real-time mode supports only a few sources and sinks."""
    for name in refused_sources(query):
        why, fix = "it reads rows in batches", "read from Kafka, or use another trigger"
        yield _real_time_problem(query, query.node.where, f"reads a {name} source", why, fix)
    if query.trigger in format_of(query.sink).refused_triggers:
        why, fix = "Spark does not support this sink here", "write to Kafka or the console"
        yield _real_time_problem(query, query.node.where, f"writes to a {query.sink} sink", why, fix)


@operator_rule("real-time-trigger", Join, trigger="real_time")
def stream_joins(query: Query, node: Join) -> Problems:
    """Real-time mode has no joins of two streams."""
    if is_stream_join(node):
        why, fix = "the join waits for rows of both streams", "use another trigger"
        yield _real_time_problem(query, node.where, "joins two streams", why, fix)


@operator_rule("real-time-trigger", SetOperation, static=True, trigger="real_time")
def set_operations(query: Query, node: SetOperation) -> Problems:
    """Real-time mode has no EXCEPT, and no unions of a CTE with itself or over an aggregation."""
    if node.kind == "except" and node.streaming:
        why, fix = "its state for each row is written only at the end of a batch", "use a left anti join"
        yield _real_time_problem(query, node.where, "uses EXCEPT", why, fix)
    if node.kind != "union":
        return
    if any(map(is_streaming_aggregate, node.walk())):
        why, fix = "a real-time query cannot have a stateful operator below a union", "aggregate after the union"
        yield _real_time_problem(query, node.where, "uses UNION on the result of an aggregation", why, fix)
    left, right = ({id(tree) for tree in _ctes(child)} for child in node.children)
    if left & right:
        why, fix = "Spark cannot tell two readers of one source apart", "repeat the query of the CTE in both places"
        yield _real_time_problem(query, node.where, "uses UNION on a CTE with itself", why, fix)


def _ctes(node: Node) -> Iterator[Node]:
    """Yields the trees of the streaming CTEs that `node` reads. Models are left out: each reference to a model has its
    own readers.
    """
    return (item.children[0] for item in node.walk(View) if isinstance(item, CteReference) and item.streaming)


@operator_rule("real-time-trigger", Deduplicate, trigger="real_time")
def deduplications(query: Query, node: Deduplicate) -> Problems:
    """Real-time mode does not support deduplication within a watermark."""
    if node.within:
        why, fix = "Spark supports deduplication only without a watermark", "use another trigger"
        yield _real_time_problem(query, node.where, "deduplicates within a watermark", why, fix)


@query_rule("real-time-trigger", trigger="real_time")
def static_joins(query: Query) -> Problems:
    """In real-time mode a join with a static table needs an equality, because each task looks rows up by key."""
    unclear = query.below(lambda hints: hints.may_equate)
    for node in query.all(Join):
        has_key = node.kind != "cross" and node.has_equality is not False
        if node.streaming and not is_stream_join(node) and not has_key and id(node) not in unclear:
            why, fix = "Spark looks up rows by key", "add a condition such as a.id = b.id"
            yield _real_time_problem(query, node.where, "joins a static table without an equality", why, fix)


@query_rule("real-time-trigger", trigger="real_time")
def refused_hints(query: Query) -> Problems:
    """Real-time mode runs all tasks at the same time, so some partitioning hints are not allowed on streams."""
    # The tokens do not show whether a hint concerns only static tables, where Spark allows it.
    if not all(scan.stream for scan in query.all(Scan)) or any(node.subqueries for node in query.nodes):
        return
    for where, name in hints_named(query, REFUSED_HINTS):
        why, fix = "Spark does not support this operator here", "remove it, or use REPARTITION"
        yield _real_time_problem(query, where, f"uses the hint {name}", why, fix)


def _real_time_problem(query: Query, where: Where, what: str, why: str, fix: str) -> QueryProblem:
    return QueryProblem(where, f"`{query.model}` {what} with a real-time trigger", why, fix)
