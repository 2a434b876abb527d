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
    Sample,
    Scan,
    SetOperation,
    Sort,
    WindowFunctions,
)
from sqlstream.compiler.rules.query import Query, QueryProblem, QueryText
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.sql.hints import read_hints
from sqlstream.compiler.sql.tokens import Tokens
from sqlstream.project.formats.formats import format_of

CODE = "continuous-trigger"
FIX = "use a micro-batch trigger, such as trigger='1 second'"

REFUSED: dict[type[Node], str] = {
    Aggregate: "an aggregation",
    Deduplicate: "a deduplication",
    Generate: "a generator or LATERAL VIEW",
    Join: "a join",
    Limit: "LIMIT or OFFSET",
    Sample: "a sample",
    SetOperation: "a set operation",
    Sort: "a sort",
    EventTimeWatermark: "a watermark",
    WindowFunctions: "a function with OVER",
}
"""The operators that it refuses, which are all but projections and filters."""

PARTITIONING = frozenset({"COALESCE", "REPARTITION", "REPARTITION_BY_RANGE", "REBALANCE"})
NOW = frozenset({"CURRENT_TIMESTAMP", "CURRENT_DATE", "CURDATE", "NOW", "LOCALTIMESTAMP"})
"""Functions of the present time."""


@rule("continuous-trigger")
def operators(query: Query) -> Iterator[QueryProblem]:
    """A continuous query can only project and filter rows."""
    if query.trigger != "continuous":
        return
    for node in query.all(*REFUSED):
        if node.streaming:
            yield _problem(query, node, f"{REFUSED[type(node)]}", "it works on batches of rows")


@rule("continuous-trigger")
def sources_and_sinks(query: Query) -> Iterator[QueryProblem]:
    """Files are read and written in batches."""
    if query.trigger != "continuous":
        return
    for node in query.all(Scan):
        name = query.formats.get(node.node_id or "", "")
        if node.stream and query.trigger in format_of(name).refused_triggers:
            yield _problem(query, query.node, f"a source of format {name}", "it can be read only in batches")
    if query.trigger in format_of(query.sink).refused_triggers:
        yield _problem(query, query.node, f"a sink of format {query.sink}", "it can be written only in batches")


@rule("continuous-trigger")
def present_time(query: Query) -> Iterator[QueryProblem]:
    """A continuous query has no batch time for the current time; Spark does not check subqueries."""
    if query.trigger != "continuous" or any(node.subqueries for node in query.nodes):
        return
    for text in query.texts:
        for index, token in enumerate(text.tokens):
            if token.key in NOW and _is_called(text.tokens, index):
                why = "its value is the time of the batch, and a continuous query has no batches"
                yield _text_problem(query, text, token.start, f"`{token.text}`", why)


@rule("continuous-trigger")
def partitioning_hints(query: Query) -> Iterator[QueryProblem]:
    """A continuous query cannot repartition rows."""
    for text, offset, name in hints_named(query, PARTITIONING) if query.trigger == "continuous" else ():
        yield _text_problem(
            query, text, offset, f"the hint {name}", "a continuous query does not move rows between partitions"
        )


def hints_named(query: Query, names: Collection[str]) -> Iterator[tuple[QueryText, int, str]]:
    """Gives each hint with one of `names`, which are in capitals, in the texts of a query: its offset and its name."""
    for text in query.texts:
        for item in (item for hint in read_hints(text.tokens) for item in hint.items):
            name = item.name.name.upper()
            if name in names:
                yield text, item.start, name


def _is_called(tokens: Tokens, index: int) -> bool:
    """Whether the word at `index` is a function with parentheses, and no name of a column."""
    following = tokens[index + 1].key if index + 1 < len(tokens) else ""
    return following == "(" and (index == 0 or tokens[index - 1].key != ".")


def _problem(query: Query, node: Node, what: str, why: str) -> QueryProblem:
    return QueryProblem(
        node.where,
        CODE,
        f"`{query.model}` uses {what} with a continuous trigger",
        f"Spark does not support it: {why}",
        FIX,
    )


def _text_problem(query: Query, text: QueryText, offset: int, what: str, why: str) -> QueryProblem:
    message = f"`{query.model}` uses {what} with a continuous trigger"
    return QueryProblem(text.at(offset), CODE, message, f"Spark does not support it: {why}", FIX)


RULES = (operators, sources_and_sinks, present_time, partitioning_hints)
