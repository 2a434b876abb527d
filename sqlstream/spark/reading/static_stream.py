"""A streaming query beside the same one over static rows: which give the same, and what the stream holds back.

Nothing here works over Spark Connect: there is no plan to look at.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm.gateway import analyzed, frame_of_plan, java_class
from sqlstream.spark.reading.duplicates import WATERMARK
from sqlstream.spark.running.plans import plan_nodes, with_children

ONLY_IN_STREAMS = frozenset(
    {
        "DeduplicateWithinWatermark",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)
"""Operators whose rows depend on when others come, or which Spark has for streams alone."""

_SESSION = "spark.sessionWindow"

_TIMES = (WATERMARK, _SESSION, "spark.timeWindow")
"""What the metadata say of a column that is an event time, or made of one (org.apache.spark.sql.catalyst.expressions,
SessionWindow and TimeWindow); those of a watermark that a source has are not in a static plan.
"""

OUTER_JOINS = ("LeftOuter", "RightOuter", "FullOuter")

HOLDING_JOINS = (*OUTER_JOINS, "LeftSemi")
"""Joins of two streams that give some rows only when the watermark has passed them."""


def is_batch_like(frame: DataFrame) -> bool:
    """Returns whether the batch over the same rows gives what the stream `frame` gives in the end, or what it has given
    by a watermark (`closed_groups`).
    """
    return not any(_is_other(node) for node in plan_nodes(analyzed(frame)))


def joins_outside(frame: DataFrame) -> bool:
    """Returns whether the batch over the rows of the stream `frame` differs by nothing but an outer join of two
    streams, which holds rows without a partner back until the watermark has passed them.
    """
    others = [node for node in plan_nodes(analyzed(frame)) if _is_other(node)]
    return len(others) == 1 and _is_outer(others[0]) and not _groups(frame)


def matched_rows(frame: DataFrame) -> DataFrame | None:
    """Returns static `frame` with an inner join in the place of its outer join; None where it has not just one."""
    plan = analyzed(frame)
    joins = [node for node in plan_nodes(plan) if _is_outer(node)]
    if len(joins) != 1:
        return None
    (join,) = joins
    kind = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.plans.JoinType").apply("inner")
    return frame_of_plan(
        frame, _replaced(frame, plan, join, join.copy(join.left(), join.right(), kind, join.condition(), join.hint()))
    )


def _is_outer(node: Any) -> bool:
    return node.getClass().getSimpleName() == "Join" and str(node.joinType().toString()) in OUTER_JOINS


def _groups(frame: DataFrame) -> bool:
    return any(node.getClass().getSimpleName() in ("Aggregate", "Distinct") for node in plan_nodes(analyzed(frame)))


def _is_other(node: Any) -> bool:
    name = node.getClass().getSimpleName()
    if name == "Join":
        children = node.children()
        both = all(children.apply(index).isStreaming() for index in range(children.size()))
        return both and str(node.joinType().toString()) in HOLDING_JOINS
    return name in ONLY_IN_STREAMS


def closed_groups(frame: DataFrame, microseconds: int) -> DataFrame | None:
    """Returns the rows of static `frame` in which only those groups count that a stream in append mode has given when
    its watermark is at `microseconds` since 1970: those whose time, or whose window's end, is not after it. None where
    that cannot be told.
    """
    plan = analyzed(frame)
    aggregates = [node for node in plan_nodes(plan) if node.getClass().getSimpleName() == "Aggregate"]
    if not aggregates:
        return frame
    if len(aggregates) > 1:
        return None
    keys = _time_keys(aggregates[0])
    if len(keys) != 1:
        return None
    make = _closed_sessions if _is_session(keys[0]) else _closed_windows
    closed = make(frame, aggregates[0], keys[0], microseconds)
    return None if closed is None else frame_of_plan(frame, _replaced(frame, plan, aggregates[0], closed))


def _closed_windows(frame: DataFrame, aggregate: Any, key: Any, microseconds: int) -> Any | None:
    """The aggregation over those rows alone whose windows are closed."""
    rows = _until(frame, aggregate.child(), key, microseconds)
    return None if rows is None else with_children(frame, aggregate, [rows])


def _closed_sessions(frame: DataFrame, aggregate: Any, key: Any, microseconds: int) -> Any | None:
    """The rows of the aggregation whose sessions are closed; before it nobody knows where a session ends."""
    columns = aggregate.aggregateExpressions()
    widened = aggregate.copy(
        aggregate.groupingExpressions(), columns.appended(key), aggregate.child(), aggregate.hint()
    )
    rows = _until(frame, widened, key, microseconds)
    project = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.plans.logical.Project")
    return None if rows is None else project(aggregate.output(), rows)


def _until(frame: DataFrame, plan: Any, key: Any, microseconds: int) -> Any | None:
    """The rows of `plan` whose time, or whose window's end, is not after `microseconds`; None where the name of the
    column is not the only one of its kind.
    """
    names = [plan.output().apply(index).name().casefold() for index in range(plan.output().size())]
    if names.count(key.name().casefold()) != 1:
        return None
    name = f"`{key.name()}`" + (".end" if key.dataType().typeName() == "struct" else "")
    return analyzed(frame_of_plan(frame, plan).where(f"unix_micros({name}) <= {microseconds}"))


def key_columns(frame: DataFrame) -> tuple[str, ...]:
    """Returns the columns of `frame` that name a row of its outermost aggregation, none where not all are given."""
    plan = analyzed(frame)
    while plan.getClass().getSimpleName() in ("SubqueryAlias", "View", "Filter", "Project"):
        plan = plan.child()
    if plan.getClass().getSimpleName() != "Aggregate":
        return ()
    listed, groups = plan.aggregateExpressions(), plan.groupingExpressions()
    keys = [groups.apply(at) for at in range(groups.size())]
    given = [listed.apply(at) for at in range(listed.size())]
    named = {at: each for at, each in enumerate(given) if any(_is_key(each, key) for key in keys)}
    covered = all(any(_is_key(each, key) for each in named.values()) for key in keys)
    return tuple(str(each.name()) for each in named.values()) if covered else ()


def _is_key(expression: Any, key: Any) -> bool:
    """Whether a column of an aggregation is a key of its groups, or the begin or end of a key that is a window: any
    other expression may give two groups one value.
    """
    if expression.getClass().getSimpleName() == "Alias":
        expression = expression.child()
    if expression.getClass().getSimpleName() == "GetStructField" and _is_time(key):
        expression = expression.child()
    return bool(expression.semanticEquals(key))


def _time_keys(aggregate: Any) -> list[Any]:
    """The columns by which an aggregation groups that carry a watermark, or are windows."""
    keys = aggregate.groupingExpressions()
    found = [keys.apply(index) for index in range(keys.size())]
    return [column for column in found if _is_time(column)]


def _is_time(column: Any) -> bool:
    is_column = column.getClass().getSimpleName() == "AttributeReference"
    return is_column and any(column.metadata().contains(mark) for mark in _TIMES)


def _is_session(key: Any) -> bool:
    return bool(key.metadata().contains(_SESSION))


def _replaced(frame: DataFrame, node: Any, part: Any, other: Any) -> Any:
    """The plan `node` with `other` in the place of its `part`."""
    if node.fastEquals(part):
        return other
    children = node.children()
    below = [_replaced(frame, children.apply(index), part, other) for index in range(children.size())]
    return with_children(frame, node, below) if below else node
