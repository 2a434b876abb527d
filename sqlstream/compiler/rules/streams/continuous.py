"""What Spark refuses under a continuous trigger: `UnsupportedOperationChecker.checkForContinuous` of Spark 4.3."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlstream.compiler.flow.nodes import (
    Aggregate,
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
    WindowFunctions,
)
from sqlstream.compiler.rules.query import Problems, Query, QueryProblem, query_rule
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.hints import read_hints
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.project.formats.formats import format_of

CODE = "continuous-trigger"

REFUSED: dict[type[Node], str] = {
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


@query_rule(CODE, trigger="continuous")
def operators(query: Query) -> Problems:
    """A continuous query can only project and filter rows."""
    nodes = ((node, what) for kind, what in REFUSED.items() for node in query.all(kind) if node.streaming)
    return (_problem(query, node.where, what, "it works on batches of rows") for node, what in nodes)


@query_rule(CODE, trigger="continuous")
def sources_and_sinks(query: Query) -> Problems:
    """Files are read and written in batches."""
    for name in refused_sources(query):
        yield _problem(query, query.node.where, f"a source of format {name}", "it can be read only in batches")
    if query.trigger in format_of(query.sink).refused_triggers:
        yield _problem(query, query.node.where, f"a sink of format {query.sink}", "it can be written only in batches")


def refused_sources(query: Query) -> Iterator[str]:
    """Yields the format of each stream that Spark does not read with the query's trigger."""
    sources = query.compiled.tables
    ids = (node.node_id or "" for node in query.all(Scan) if node.stream)
    formats = (sources[node_id].format for node_id in ids if node_id in sources)
    return (name for name in formats if query.trigger in format_of(name).refused_triggers)


@query_rule(CODE, trigger="continuous")
def present_time(query: Query) -> Problems:
    """A continuous query has no batch time for the current time; Spark does not check subqueries."""
    if any(node.subqueries for node in query.nodes):
        return
    words = ((model, index, token) for model, tokens in query.texts.items() for index, token in enumerate(tokens))
    for model, index, token in words:
        if token.key in NOW and _is_called(query.texts[model], index):
            why = "its value is the time of the batch, and a continuous query has no batches"
            yield _problem(query, Where(model, token.start), f"`{token.text}`", why)


@query_rule(CODE, trigger="continuous")
def partitioning_hints(query: Query) -> Problems:
    """A continuous query cannot repartition rows."""
    why = "a continuous query does not move rows between partitions"
    return (_problem(query, where, f"the hint {name}", why) for where, name in hints_named(query, PARTITIONING))


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


def _problem(query: Query, where: Where, what: str, why: str) -> QueryProblem:
    return QueryProblem(
        where,
        f"`{query.model}` uses {what} with a continuous trigger",
        f"Spark does not support it: {why}",
        "use a micro-batch trigger, such as trigger='1 second'",
    )
