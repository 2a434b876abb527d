"""Rules on watermarks: one per stream, on a timestamp."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.compiler.flow.nodes import Aggregate, Deduplicate, EventTimeWatermark, Filter, Join, Node, Opaque, Scan
from sqlstream.compiler.flow.type_rules import TIMESTAMP, may_be_event_time
from sqlstream.compiler.rules.query import Problems, Query, is_stateful, is_stream_join, operator_rule, query_rule
from sqlstream.compiler.rules.rule import QueryProblem
from sqlstream.compiler.spark_versions import is_later
from sqlstream.errors import Severity

INTERNALS = "spark.sqlstream.internals"
"""The setting of a target that keeps sqlstream from Spark's internals."""

POLICY = "spark.sql.streaming.multipleWatermarkPolicy"


@operator_rule("second-watermark", EventTimeWatermark, static=True)
def second_watermarks(query: Query, node: EventTimeWatermark) -> Problems:
    """A second watermark on the same rows fails in the first batch; with an aggregation in between, the query never
    emits anything.
    """
    refused = next(_watermarks(node.children[0].walk(Aggregate)), None)
    below = refused or next(_watermarks(node.children[0].walk()), None)
    if below is None:
        return
    first = "its source" if below.event_time.where is None else f"`{query.name_of(below.where.model)}`"
    effect = (
        "rejects a second one in the first batch" if refused else "accepts a second one, but then never emits a row"
    )
    yield QueryProblem(
        node.where,
        f"`{node.column}` gets a second watermark: `{below.column}` already has one",
        f"{first} declares a watermark of {below.event_time.delay}, and Spark {effect}",
        "keep one of them",
    )


def _watermarks(nodes: Iterator[Node]) -> Iterator[EventTimeWatermark]:
    return (node for node in nodes if isinstance(node, EventTimeWatermark))


@operator_rule("watermark-type", EventTimeWatermark, static=True)
def wrong_event_times(_: Query, node: EventTimeWatermark) -> Problems:
    """A watermark needs a timestamp column. Another rule checks the watermarks of sources."""
    if node.event_time.where is None:
        return
    columns = node.columns or ()
    others = [column.name for column in columns if column.type == TIMESTAMP and not column.event_time]
    instead = f"declare it on `{others[0]}`, which is a timestamp; or " if others else ""
    for column in columns:
        if column.event_time is node.event_time and not may_be_event_time(column.type):
            name = column.in_sql
            yield QueryProblem(
                node.where,
                f"`{column.name}` cannot have a watermark: its type is {column.type}",
                "Spark supports watermarks only on timestamps",
                f"{instead}convert it in an upstream model, for example to_timestamp({name}) as {name}",
            )


@query_rule("filter-behind-watermark", severity=Severity.WARNING)
def limits_behind_watermarks(query: Query) -> Problems:
    """A condition on the event time behind the watermark does not keep rows from advancing it."""
    if not any(map(is_stateful, query.nodes)):
        return
    conditions = (time for node in query.executed() if isinstance(node, Filter | Join) for time in node.times)
    for time in dict.fromkeys(time for time in conditions if time.is_limit):
        of_source = any(mark.event_time.where is None for mark in _watermarks(iter(query.nodes)))
        move = "remove `watermark:` from the source, and give" if of_source else "give"
        yield QueryProblem(
            time.where,
            f"rows that this condition on `{time.column}` removes still advance the watermark",
            "Spark checks conditions on the event time after the watermark: one removed row with a time far in the "
            "future moves the watermark there, and all later rows are dropped as late",
            f"filter in an upstream model or a subquery in FROM, and {move} the WATERMARK hint to the SELECT that "
            "reads it; or set `max_event_time` of the source, for example to `1 hour`",
        )


@query_rule("forgotten-watermark", severity=Severity.WARNING)
def forgotten_watermarks(query: Query) -> Problems:
    """Spark forgets the watermark of each input when a run ends. On some targets sqlstream cannot restore them."""
    target = query.compiled.project.target
    settings = {name: str(value).lower() for name, value in target.spark.items()}
    is_kept = target.remote is None and settings.get(INTERNALS) != "false"
    is_kept = is_kept and not is_later(query.compiled.options.spark)
    # With `max`, an input without new events does not hold the others back.
    if is_kept or not query.terminal.config.trigger.facts.ends or settings.get(POLICY) == "max":
        return
    marks = [node for node in query.executed() if isinstance(node, EventTimeWatermark) and node.streaming]
    waits = query.mode == "append" or any(map(is_stream_join, query.nodes))
    if len(marks) > 1 and waits and any(map(is_stateful, query.nodes)):
        yield QueryProblem(
            marks[0].where,
            f"`{query.model}` emits rows only in runs in which all of its {len(marks)} watermarks get new events",
            "the lowest one counts, Spark keeps only that one when a run ends, and on this target sqlstream cannot "
            "restore that of each input",
            "use a trigger with an interval, so that one run goes on; or set one watermark behind a UNION of them",
        )


@query_rule("latest-first")
def backlogs_from_the_end(query: Query) -> Problems:
    """Reading a backlog newest first moves the watermark past all other rows."""
    scans = (scan for scan in _scans_with_late_rows(query) if scan.newest_first and scan.stream)
    for where in dict.fromkeys(scan.where for scan in scans):
        yield QueryProblem(
            where,
            f"`{query.model}` has a watermark on a source that reads the newest files first",
            "the newest files advance the watermark, so Spark drops the rows of all older files as late",
            "remove latestFirst, or declare a second source on the same path without it for this query",
            key="options.latestFirst",
        )


def _scans_with_late_rows(query: Query) -> Iterator[Scan]:
    """Yields what is read below a watermark below a stateful operator: only such an operator drops late rows."""
    marks = (mark for node in query.nodes if is_stateful(node) for mark in _watermarks(node.walk()))
    return (below for mark in marks for below in mark.walk() if isinstance(below, Scan))


@query_rule("quarantine")
def late_rows_without_state(query: Query) -> Problems:
    """Only a query with a state leaves out rows that are late."""
    if not query.terminal.keeps_late_rows:
        return
    if not any(is_stateful(node) or isinstance(node, Deduplicate | Opaque) for node in query.nodes):
        yield QueryProblem(
            query.node.where,
            f"`{query.model}` has no late rows to keep",
            "it sets late_rows: quarantine, but keeps no state: a row behind the watermark is a row like the others",
            "remove late_rows",
        )
