"""Rules on watermarks: one per stream, on a timestamp."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import Aggregate, EventTimeWatermark, Node, Scan
from sqlstream.compiler.flow.types.values import TIMESTAMP
from sqlstream.compiler.rules.query import Query, QueryProblem, is_stateful
from sqlstream.compiler.rules.rule import rule
from sqlstream.project.types.types import Unknown


@rule("second-watermark")
def second_watermarks(query: Query) -> Iterator[QueryProblem]:
    """A second watermark on the same rows fails in the first batch; with an aggregation in between, the query never
    emits anything.
    """
    for node in query.all(EventTimeWatermark):
        refused = _first_watermark(node.children[0].walk(Aggregate))
        below = refused or _first_watermark(node.children[0].walk())
        if below is None:
            continue
        first = "its source" if below.event_time.where is None else f"`{query.names.get(below.where.model, '')}`"
        effect = (
            "rejects a second one in the first batch" if refused else "accepts a second one, but then never emits a row"
        )
        yield QueryProblem(
            node.where,
            "second-watermark",
            f"`{node.column}` gets a second watermark: `{below.column}` already has one",
            f"{first} declares a watermark of {below.event_time.delay}, and Spark {effect}",
            "keep one of them",
        )


def _first_watermark(nodes: Iterator[Node]) -> EventTimeWatermark | None:
    return next((node for node in nodes if isinstance(node, EventTimeWatermark)), None)


@rule("watermark-type")
def wrong_event_times(query: Query) -> Iterator[QueryProblem]:
    """A watermark needs a timestamp column. Another rule checks the watermarks of sources."""
    for node in query.all(EventTimeWatermark):
        for column in node.columns or () if node.event_time.where is not None else ():
            if column.event_time is node.event_time and not may_be_event_time(column):
                others = [item.name for item in node.columns or () if item.type == TIMESTAMP and not item.event_time]
                instead = f"declare it on `{others[0]}`, which is a timestamp; or " if others else ""
                yield QueryProblem(
                    node.where,
                    "watermark-type",
                    f"`{column.name}` cannot have a watermark: its type is {column.type}",
                    "Spark supports watermarks only on timestamps",
                    f"{instead}convert it in an upstream model, for example to_timestamp({column.in_sql}) as "
                    f"{column.in_sql}",
                )


def may_be_event_time(column: Column) -> bool:
    """Returns whether a column can have a watermark, as far as its type is known."""
    return column.type is None or isinstance(column.type, Unknown) or column.type == TIMESTAMP


@rule("latest-first")
def backlogs_from_the_end(query: Query) -> Iterator[QueryProblem]:
    """Reading a backlog newest first moves the watermark past all other rows."""
    for where in dict.fromkeys(
        scan.where for scan in _scans_with_late_rows(query) if scan.newest_first and scan.stream
    ):
        yield QueryProblem(
            where,
            "latest-first",
            f"`{query.model}` has a watermark on a source that reads the newest files first",
            "the newest files advance the watermark, so Spark drops the rows of all older files as late",
            "remove latestFirst, or declare a second source on the same path without it for this query",
            key="options.latestFirst",
        )


def _scans_with_late_rows(query: Query) -> Iterator[Scan]:
    """What is read below a watermark below an operator with state: only such an operator drops late rows."""
    for node in query.nodes:
        if not is_stateful(node):
            continue
        for mark in node.walk():
            if isinstance(mark, EventTimeWatermark):
                yield from (below for below in mark.walk() if isinstance(below, Scan))


RULES = (second_watermarks, wrong_event_times, backlogs_from_the_end)
