"""Compares a streaming query with the batch query over the same rows: whether they agree, and what the stream delays.

Over Connect: not available, because plans are not shown.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm.gateway import analyzed, frame_of_plan, java_class, node_class, plan_nodes, seq_items
from sqlstream.spark.jvm.plans import WATERMARK, map_children

ONLY_IN_STREAMS = frozenset(
    {
        "DeduplicateWithinWatermark",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)
"""Operators whose rows depend on the arrival order, or that Spark supports only in streams."""

_SESSION = "spark.sessionWindow"

_TIMES = (WATERMARK, _SESSION, "spark.timeWindow")
"""Metadata keys of event time columns and of windows over them (org.apache.spark.sql.catalyst.expressions,
SessionWindow and TimeWindow). A static plan does not contain the watermark of a source.
"""

OUTER_JOINS = ("LeftOuter", "RightOuter", "FullOuter")

DELAYING_JOINS = (*OUTER_JOINS, "LeftSemi")
"""Joins of two streams that return some rows only when the watermark has passed them."""


def equals_batch(frame: DataFrame) -> bool:
    """Returns whether the batch over the same rows returns what the stream `frame` returns in the end, or up to a
    watermark (`closed_groups`).
    """
    return not any(_differs_from_batch(node) for node in plan_nodes(analyzed(frame)))


def differs_by_outer_join(frame: DataFrame) -> bool:
    """Returns whether the stream `frame` differs from its batch only by one outer join of two streams, which delays
    rows without a match until the watermark has passed them.
    """
    others = [node for node in plan_nodes(analyzed(frame)) if _differs_from_batch(node)]
    # a group above the join can have rows with and without a match
    return len(others) == 1 and _is_outer_join(others[0]) and not _has_groups(frame)


def matched_rows(frame: DataFrame) -> DataFrame | None:
    """Returns the static `frame` with an inner join instead of its outer join, None unless it has exactly one."""
    plan = analyzed(frame)
    joins = [node for node in plan_nodes(plan) if _is_outer_join(node)]
    if len(joins) != 1:
        return None
    (join,) = joins
    kind = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.plans.JoinType").apply("inner")
    inner = join.copy(join.left(), join.right(), kind, join.condition(), join.hint())
    return frame_of_plan(frame, _replaced(frame, plan, join, inner))


def _is_outer_join(node: Any) -> bool:
    return node_class(node) == "Join" and str(node.joinType().toString()) in OUTER_JOINS


def _has_groups(frame: DataFrame) -> bool:
    return any(node_class(node) in ("Aggregate", "Distinct") for node in plan_nodes(analyzed(frame)))


def _differs_from_batch(node: Any) -> bool:
    name = node_class(node)
    if name == "Join":
        are_streams = all(child.isStreaming() for child in seq_items(node.children()))
        return are_streams and str(node.joinType().toString()) in DELAYING_JOINS
    return name in ONLY_IN_STREAMS


def closed_groups(frame: DataFrame, microseconds: int) -> DataFrame | None:
    """Returns the static `frame` with only the groups that a stream in append mode has returned at a watermark of
    `microseconds` since 1970: those whose time or end of window is not after it. None if that is unknown.
    """
    plan = analyzed(frame)
    aggregates = [node for node in plan_nodes(plan) if node_class(node) == "Aggregate"]
    if not aggregates:
        return frame
    keys = [column for column in seq_items(aggregates[0].groupingExpressions()) if _is_time(column)]
    if len(aggregates) > 1 or len(keys) != 1:
        return None
    close = _closed_sessions if keys[0].metadata().contains(_SESSION) else _closed_windows
    closed = close(frame, aggregates[0], keys[0], microseconds)
    return None if closed is None else frame_of_plan(frame, _replaced(frame, plan, aggregates[0], closed))


def _closed_windows(frame: DataFrame, aggregate: Any, key: Any, microseconds: int) -> Any | None:
    """Returns the aggregation over only the rows whose windows are closed."""
    rows = _until(frame, aggregate.child(), key, microseconds)
    return None if rows is None else map_children(frame, aggregate, lambda _: rows)


def _closed_sessions(frame: DataFrame, aggregate: Any, key: Any, microseconds: int) -> Any | None:
    """Returns the rows of the aggregation whose sessions are closed; only the aggregation knows a session's end."""
    columns = aggregate.aggregateExpressions()
    widened = aggregate.copy(
        aggregate.groupingExpressions(), columns.appended(key), aggregate.child(), aggregate.hint()
    )
    rows = _until(frame, widened, key, microseconds)
    project = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.plans.logical.Project")
    return None if rows is None else project(aggregate.output(), rows)


def _until(frame: DataFrame, plan: Any, key: Any, microseconds: int) -> Any | None:
    """Returns the rows of `plan` whose time or end of window is not after `microseconds`; None if the column's name is
    ambiguous.
    """
    names = [column.name().casefold() for column in seq_items(plan.output())]
    if names.count(key.name().casefold()) != 1:
        return None
    name = f"`{key.name()}`" + (".end" if key.dataType().typeName() == "struct" else "")
    return analyzed(frame_of_plan(frame, plan).where(f"unix_micros({name}) <= {microseconds}"))


def key_columns(frame: DataFrame) -> tuple[str, ...]:
    """Returns the columns of `frame` that are the keys of its outermost aggregation, none if it does not have all."""
    plan = analyzed(frame)
    # none of these merges or splits the rows of a group
    while node_class(plan) in ("CollectMetrics", "SubqueryAlias", "View", "Filter", "Project"):
        plan = plan.child()
    if node_class(plan) != "Aggregate":
        return ()
    keys = seq_items(plan.groupingExpressions())
    columns = [column for column in seq_items(plan.aggregateExpressions()) if any(_is_key(column, key) for key in keys)]
    has_all = all(any(_is_key(column, key) for column in columns) for key in keys)
    return tuple(str(column.name()) for column in columns) if has_all else ()


def _is_key(expression: Any, key: Any) -> bool:
    """Returns whether a column of an aggregation is a key of its groups, or the start or end of a key that is a window.
    Any other expression can have the same value in two groups.
    """
    if node_class(expression) == "Alias":
        expression = expression.child()
    if node_class(expression) == "GetStructField" and _is_time(key):
        expression = expression.child()
    return bool(expression.semanticEquals(key))


def _is_time(column: Any) -> bool:
    """Returns whether a grouping column has a watermark or is a window."""
    return node_class(column) == "AttributeReference" and any(column.metadata().contains(key) for key in _TIMES)


def _replaced(frame: DataFrame, node: Any, part: Any, other: Any) -> Any:
    """Returns the plan `node` with `other` instead of its `part`."""
    if node.fastEquals(part):
        return other
    return map_children(frame, node, lambda child: _replaced(frame, child, part, other))
