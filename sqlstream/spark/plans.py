"""What Spark's analysed plan tells of a query: whether it keeps state, and where that can be kept."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm import analyzed

STATEFUL_NODES = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "Except",
        "FlatMapGroupsInPandasWithState",
        "FlatMapGroupsWithState",
        "GlobalLimit",
        "Intersect",
        "TransformWithState",
        "TransformWithStateInPySpark",
    }
)
"""Logical operators that keep state when their input streams
(org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker and IncrementalExecution)."""

TRANSFORMS = ("TransformWithState", "TransformWithStateInPySpark")
"""Logical operators whose state RocksDB alone keeps."""


def is_stateful(frame: DataFrame) -> bool:
    """Returns whether a streaming query over `frame` keeps state. Over Connect: only the checkpoint tells."""
    return _keeps_state(analyzed(frame))


def _keeps_state(node: Any) -> bool:
    children = node.children()
    below = [children.apply(index) for index in range(children.size())]
    name = node.getClass().getSimpleName()
    if name in STATEFUL_NODES and node.isStreaming():
        return True
    if name == "Join" and all(child.isStreaming() for child in below):
        return True
    return any(_keeps_state(child) for child in below if child.isStreaming())


def transforms_with_state(frame: DataFrame) -> bool:
    """Returns whether a streaming query over `frame` has a stateful processor (`transformWithState` and its like)."""
    return frame.isStreaming and _has(analyzed(frame), TRANSFORMS)


def _has(node: Any, names: tuple[str, ...]) -> bool:
    children = node.children()
    below = [children.apply(index) for index in range(children.size())]
    return node.getClass().getSimpleName() in names or any(_has(child, names) for child in below)
