"""What Spark's analysed plan tells of a query: whether it keeps state, and where that can be kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm.gateway import analyzed, frame_of_plan, java_class, jvm_of
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.reading.duplicates import WATERMARK

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


@dataclass(frozen=True)
class GroupedRows:
    """The rows that an aggregation groups, and which of their columns is the event time: a window's struct, or a plain
    time.
    """

    rows: DataFrame
    time: int
    is_window: bool

    def count_until(self, microseconds: int) -> int:
        """Returns how many of them count nowhere when the watermark is at `microseconds` since 1970: Spark drops a
        group whose time, or whose window's end, the watermark has reached. Raises: Spark's errors.
        """
        named = self.rows.toDF(*(f"c{index}" for index in range(len(self.rows.columns))))
        time = f"c{self.time}.end" if self.is_window else f"c{self.time}"
        return named.where(f"unix_micros({time}) <= {microseconds}").count()


PLAN = "analysed plan"

_GROUPS = ("Aggregate", "Distinct")
"""Logical operators that drop late rows after they have grouped them."""

TRANSFORMS = ("TransformWithState", "TransformWithStateInPySpark")
"""Logical operators whose state RocksDB alone keeps."""

GROUP_STATES = ("FlatMapGroupsInPandasWithState", "FlatMapGroupsWithState")
"""Logical operators whose function has a state for each group, and perhaps a timeout."""


def is_stateful(frame: DataFrame) -> bool:
    """Returns whether a streaming query over `frame` keeps state. Where the plan cannot be looked at, every stream
    counts as one that does: a change of it is then refused rather than risked.
    """
    return call_internal(frame.sparkSession, PLAN, lambda: _keeps_state(analyzed(frame)), lambda: frame.isStreaming)


def _keeps_state(node: Any) -> bool:
    children = node.children()
    below = [children.apply(index) for index in range(children.size())]
    name = node.getClass().getSimpleName()
    if name in STATEFUL_NODES and node.isStreaming():
        return True
    if name == "Join" and all(child.isStreaming() for child in below):
        return True
    return any(_keeps_state(child) for child in below if child.isStreaming())


def grouped_by_time(frame: DataFrame, stream: DataFrame) -> GroupedRows | None:
    """Returns the rows that the aggregation of the static `frame` groups by its event time, where it has one such
    aggregation (or DISTINCT) and nothing below keeps state in `stream`, the same query over streams; else None.
    Over Connect: there is no plan to look at.
    """
    found = [node for node in plan_nodes(analyzed(frame)) if node.getClass().getSimpleName() in _GROUPS]
    streaming = [node for node in plan_nodes(analyzed(stream)) if node.getClass().getSimpleName() in _GROUPS]
    if len(found) != 1 or len(streaming) != 1 or _keeps_state(streaming[0].child()):
        return None
    (aggregate,) = found
    child = aggregate.child()
    output = child.output()
    is_distinct = aggregate.getClass().getSimpleName() == "Distinct"
    keys = output if is_distinct else aggregate.groupingExpressions()
    ids = {_attribute_id(keys.apply(index)) for index in range(keys.size())}
    for index in range(output.size()):
        attribute = output.apply(index)
        if attribute.exprId().id() in ids and attribute.metadata().contains(WATERMARK):
            is_window = attribute.dataType().typeName() == "struct"
            return GroupedRows(frame_of_plan(frame, _once(frame, child)), index, is_window)
    return None


def _once(frame: DataFrame, node: Any) -> Any:
    """The plan `node` in which each row comes once: of its sliding windows in the one that stays open longest, which is
    the first projection of the Expand that org.apache.spark.sql.catalyst.analysis.TimeWindowing makes.
    """
    if node.getClass().getSimpleName() == "Expand":
        node = node.copy(node.projections().take(1), node.output(), node.child())
    children = node.children()
    below = [_once(frame, children.apply(index)) for index in range(children.size())]
    return with_children(frame, node, below) if below else node


def with_children(frame: DataFrame, node: Any, children: Sequence[Any]) -> Any:
    """Returns the plan `node`, of `frame`, over other children."""
    return node.withNewChildren(jvm_of(frame.sparkSession).PythonUtils.toSeq(list(children)))


def _attribute_id(expression: Any) -> int | None:
    is_column = expression.getClass().getSimpleName() == "AttributeReference"
    return int(expression.exprId().id()) if is_column else None


def plan_nodes(node: Any) -> Iterator[Any]:
    """Gives a plan and all plans below it, or an expression and all of its parts."""
    yield node
    children = node.children()
    for index in range(children.size()):
        yield from plan_nodes(children.apply(index))


@dataclass(frozen=True)
class Processor:
    """A stateful processor of a query: `in_rocksdb` says whether RocksDB alone keeps its state, `time` is what Spark
    calls the time of its timers or timeouts.
    """

    in_rocksdb: bool
    time: str

    @property
    def never_rests(self) -> bool:
        """Whether Spark runs batches for it for ever, whether there are rows or not."""
        return "ProcessingTime" in self.time


@dataclass(frozen=True)
class AggregateCall:
    """A call of a Python aggregate, such as a pandas UDF of Series to scalar: the function's name, and where the call
    begins in the text of SQL, None where it comes from no SQL.
    """

    function: str
    offset: int | None


def streaming_python_aggregates(frame: DataFrame) -> tuple[AggregateCall, ...]:
    """Returns the calls of Python aggregates over streams in `frame`: Spark refuses them when it plans the first batch
    (org.apache.spark.sql.execution.SparkStrategies.StatefulAggregationStrategy). None where there is no plan to look
    at: that refusal is then what tells.
    """
    return call_internal(frame.sparkSession, PLAN, lambda: _streaming_python_aggregates(frame), tuple)


def _streaming_python_aggregates(frame: DataFrame) -> tuple[AggregateCall, ...]:
    plan = analyzed(frame)
    pattern = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.trees.TreePattern").PYTHON_UDF()
    if not plan.isStreaming() or not plan.containsPattern(pattern):
        return ()
    aggregates = (node for node in plan_nodes(plan) if node.getClass().getSimpleName() == "Aggregate")
    calls = (call for node in aggregates if node.isStreaming() for call in _python_aggregates(node.expressions()))
    return tuple(dict.fromkeys(calls))


def _python_aggregates(expressions: Any) -> Iterator[AggregateCall]:
    for index in range(expressions.size()):
        for part in plan_nodes(expressions.apply(index)):
            if part.getClass().getSimpleName() == "PythonUDAF":
                start = part.origin().startIndex()
                yield AggregateCall(str(part.name()), int(start.get()) if start.isDefined() else None)


def processors(frame: DataFrame) -> tuple[Processor, ...]:
    """Returns the stateful processors of `frame`, none where there is no plan to look at."""
    return call_internal(frame.sparkSession, PLAN, lambda: _processors(frame), tuple)


def _processors(frame: DataFrame) -> tuple[Processor, ...]:
    names = ((node, node.getClass().getSimpleName()) for node in plan_nodes(analyzed(frame)))
    return tuple(
        Processor(name in TRANSFORMS, str((node.timeMode() if name in TRANSFORMS else node.timeout()).toString()))
        for node, name in names
        if name in (*TRANSFORMS, *GROUP_STATES)
    )
