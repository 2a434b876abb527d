"""Reads facts about a query from Spark's plans, such as whether it keeps state and which columns it reads, and plans
its batches. Spark Connect does not expose plans.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext
from pyspark.errors import AnalysisException, PySparkException, UnsupportedOperationException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.spark.jvm.gateway import (
    JVM_ERRORS,
    analyzed,
    batch_plan,
    calls_clock,
    causes_of,
    execution_of,
    frame_of_plan,
    is_jvm_gone,
    java_class,
    jvm_of,
    node_class,
    plan_nodes,
    seq_items,
)
from sqlstream.spark.jvm.internals import call_internal, is_missing

WATERMARK = "spark.watermarkDelayMs"
"""The metadata key of a column with a watermark (`EventTimeWatermark.delayKey`)."""

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
"""Logical operators that keep state over streaming input
(org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker and IncrementalExecution)."""

PLAN = "analyzed plan"

TRANSFORMS = ("TransformWithState", "TransformWithStateInPySpark")
"""Logical operators that need RocksDB for their state."""

GROUP_STATES = ("FlatMapGroupsInPandasWithState", "FlatMapGroupsWithState")
"""Logical operators whose function has a state for each group, with an optional timeout."""

MAX_PASSES = 10
"""Each pass prunes one more operator; Spark's own limit is 100."""


@dataclass(frozen=True)
class GroupedRows:
    """The input rows of an aggregation, and the index of their event time: a window's struct, or a plain time."""

    rows: DataFrame
    time: int
    is_window: bool

    def count_until(self, microseconds: int) -> int:
        """Returns how many rows are too late at a watermark of `microseconds` since 1970: Spark drops a group whose
        time or end of window the watermark has reached. Raises: Spark's errors.
        """
        named = self.rows.toDF(*(f"c{index}" for index in range(len(self.rows.columns))))
        time = f"c{self.time}.end" if self.is_window else f"c{self.time}"
        return named.where(f"unix_micros({time}) <= {microseconds}").count()


_GROUPS = ("Aggregate", "Distinct")
"""Logical operators that drop late rows after grouping."""


def is_stateful(frame: DataFrame, unknown: Callable[[], bool] = lambda: True) -> bool:
    """Returns whether a streaming query of `frame` keeps state. Without access to the plan, it returns `unknown()` for
    every stream (default: True, so that unsafe changes are refused).
    """

    def without_plan() -> bool:
        return frame.isStreaming and unknown()

    return call_internal(frame.sparkSession, PLAN, lambda: keeps_state(analyzed(frame)), without_plan)


def keeps_state(node: Any) -> bool:
    """Returns whether an operator or one below it keeps state. Over Connect: not available."""
    return has_state(node) or any(keeps_state(child) for child in seq_items(node.children()) if child.isStreaming())


def has_state(node: Any) -> bool:
    """Returns whether an operator itself keeps state."""
    name = node_class(node)
    if name == "Join":  # a join with a static side keeps nothing
        return all(child.isStreaming() for child in seq_items(node.children()))
    return name in STATEFUL_NODES and bool(node.isStreaming())


def has_only_one_aggregation(frame: DataFrame) -> bool:
    """Returns whether the state of the streaming `frame` is that of one aggregation, or DISTINCT. Over Connect: not
    available.
    """

    def find() -> bool:
        nodes = list(plan_nodes(analyzed(frame)))
        groups = [node for node in nodes if node_class(node) in _GROUPS and node.isStreaming()]
        return len(groups) == 1 and sum(map(has_state, nodes)) == 1

    return call_internal(frame.sparkSession, PLAN, find, lambda: False)


def unstable_column(frame: DataFrame, column: str) -> str | None:
    """Returns why a row of the streaming `frame` can have another value in `column`, or can be missing, if it is
    computed again from the same data, as a sentence without a period; None if it cannot. Over Connect: not available.
    """

    def find() -> str | None:
        plan = _pruned(frame, analyzed(frame.select(quote_identifier(column))))
        if calls_clock(frame.sparkSession, plan):
            return "it depends on the current time"
        groups = [node for node in plan_nodes(plan) if node_class(node) == "Aggregate" and node.isStreaming()]
        items = (item for node in groups for item in seq_items(node.aggregateExpressions()))
        parts = (part for item in items for part in plan_nodes(item))
        if any(node_class(part) == "AggregateExpression" for part in parts):
            return "it is aggregated, so late rows change it"
        if groups and "session_window" in str(plan.toString()):
            return "it is a session, which late rows extend"
        return None

    return call_internal(frame.sparkSession, PLAN, find, lambda: "this Spark does not show how it is computed")


def rows_of_failed_batch(query: StreamingQuery | None, frame: DataFrame, observation: str) -> DataFrame | None:
    """Returns the rows that `observation` has observed in the last batch of `query`, or in the batch query `frame`
    without one. They are read again. None if they depend on a state, which a second reading could change, or if this
    Spark does not show the plan.
    """

    def find() -> DataFrame | None:
        if query is None:
            return _observed(frame, analyzed(frame), observation)
        batch = execution_of(query).lastExecution()
        if batch is None:
            return None
        return _observed(empty_frame_of(batch), batch.logical(), observation)

    return call_internal(frame.sparkSession, "plan of a failed batch", find, lambda: None)


_BATCH_CHECK = "spark.sql.streaming.unsupportedOperationCheck"
"""The setting with which Spark refuses to run the plan of a stream, also that of one batch, without a query."""


def empty_frame_of(batch: Any) -> DataFrame:
    """Returns an empty frame of a session that can run parts of the plan of `batch`, an execution of a streaming query,
    without the query. Over Connect: not available.
    """
    # a restart of the query has its settings from the session of the batch
    session = SparkSession(SparkContext.getOrCreate(), batch.sparkSession().cloneSession())
    session.conf.set(_BATCH_CHECK, "false")
    return session.range(0)


def _observed(frame: DataFrame, plan: Any, observation: str) -> DataFrame | None:
    for node in plan_nodes(plan):
        if node_class(node) == "CollectMetrics" and node.name() == observation:
            return None if keeps_state(node.child()) else frame_of_plan(frame, node.child())
    return None


def grouped_by_time(frame: DataFrame, stream: DataFrame) -> GroupedRows | None:
    """Returns the input rows of the aggregation by event time (or DISTINCT) in the static `frame`. None unless there is
    exactly one, without state below it in `stream`, the same query over streams. Over Connect: not available.
    """
    found = [node for node in plan_nodes(analyzed(frame)) if node_class(node) in _GROUPS]
    streaming = [node for node in plan_nodes(analyzed(stream)) if node_class(node) in _GROUPS]
    if len(found) != 1 or len(streaming) != 1 or keeps_state(streaming[0].child()):
        return None
    (aggregate,) = found
    child = aggregate.child()
    output = seq_items(child.output())
    keys = output if node_class(aggregate) == "Distinct" else seq_items(aggregate.groupingExpressions())
    ids = {int(key.exprId().id()) for key in keys if node_class(key) == "AttributeReference"}
    for index, attribute in enumerate(output):
        if attribute.exprId().id() in ids and attribute.metadata().contains(WATERMARK):
            is_window = attribute.dataType().typeName() == "struct"
            return GroupedRows(frame_of_plan(frame, in_last_window(frame, child)), index, is_window)
    return None


def in_last_window(frame: DataFrame, node: Any) -> Any:
    """Returns the plan `node`, a part of that of `frame`, with each row only once, in the last of its sliding windows.
    That is the first projection of the Expand node of org.apache.spark.sql.catalyst.analysis.TimeWindowing.
    """
    if node_class(node) == "Expand":
        node = node.copy(node.projections().take(1), node.output(), node.child())
    return map_children(frame, node, lambda child: in_last_window(frame, child))


def map_children(frame: DataFrame, node: Any, change: Callable[[Any], Any]) -> Any:
    """Returns the node of the plan of `frame` with its children replaced by the results of `change`."""
    children = [change(child) for child in seq_items(node.children())]
    return node.withNewChildren(jvm_of(frame.sparkSession).PythonUtils.toSeq(children)) if children else node


@dataclass(frozen=True)
class Processor:
    """A stateful processor of a query: whether its state needs RocksDB, and Spark's name of the time mode of its timers
    or timeouts.
    """

    in_rocksdb: bool
    time: str

    @property
    def runs_without_data(self) -> bool:
        """Whether Spark runs batches for it even without new rows."""
        return "ProcessingTime" in self.time


@dataclass(frozen=True)
class AggregateCall:
    """A call of a Python aggregate, such as a pandas UDF from Series to scalar: the function's name, and the offset of
    the call in the SQL (None: not from SQL).
    """

    function: str
    offset: int | None


def streaming_python_aggregates(frame: DataFrame) -> tuple[AggregateCall, ...]:
    """Returns the calls of Python aggregates over streams in `frame`, which Spark refuses when it plans the first batch
    (org.apache.spark.sql.execution.SparkStrategies.StatefulAggregationStrategy). Empty without access to the plan;
    only the first batch then finds the error.
    """
    return call_internal(frame.sparkSession, PLAN, lambda: _streaming_python_aggregates(frame), tuple)


def _streaming_python_aggregates(frame: DataFrame) -> tuple[AggregateCall, ...]:
    plan = analyzed(frame)
    pattern = java_class(frame.sparkSession, "org.apache.spark.sql.catalyst.trees.TreePattern").PYTHON_UDF()
    if not plan.isStreaming() or not plan.containsPattern(pattern):
        return ()
    aggregates = (node for node in plan_nodes(plan) if node_class(node) == "Aggregate")
    calls = (call for node in aggregates if node.isStreaming() for call in _python_aggregates(node.expressions()))
    return tuple(dict.fromkeys(calls))


def _python_aggregates(expressions: Any) -> Iterator[AggregateCall]:
    parts = (part for expression in seq_items(expressions) for part in plan_nodes(expression))
    for part in parts:
        if node_class(part) == "PythonUDAF":
            start = part.origin().startIndex()
            yield AggregateCall(str(part.name()), int(start.get()) if start.isDefined() else None)


_SAVES = ("StateStoreSaveExec", "SessionWindowStateStoreSaveExec")
"""Physical operators that write the groups of an aggregation."""


def check_batch(frame: DataFrame, output_mode: str) -> None:
    """Plans the first batch of the streaming `frame` as Spark does after `start()` has returned, without reading data.

    Raises: PySparkException if Spark refuses the query. Other errors are ignored, because they come from what Spark
    reads, such as a catalog. Over Connect: only the first batch finds the error.
    """
    if any(_reads_when_planned(leaf) for leaf in seq_items(analyzed(frame).collectLeaves())):
        return
    try:  # the state of a processor needs another provider than the session's
        plan = batch_plan(frame, output_mode, with_state=not _processors(frame))
    except (PySparkException, *JVM_ERRORS) as error:
        if _is_refusal(error) or is_missing(error) or is_jvm_gone(error):
            raise
        return
    if output_mode != "append":
        return
    for node in plan_nodes(plan):
        if node_class(node) in _SAVES and node.watermarkPredicateForDataForEviction().isEmpty():
            # Spark finds it in the tasks of the batch
            raise AnalysisException(message="Append output mode not supported for aggregations without watermark")


def _reads_when_planned(leaf: Any) -> bool:
    """Returns whether Spark asks the brokers about a static table of Kafka in order to plan a query."""
    return node_class(leaf) == "LogicalRelation" and node_class(leaf.relation()) == "KafkaRelation"


def _is_refusal(error: BaseException) -> bool:
    is_requirement = causes_of(error)[0].words.startswith("requirement failed")
    return is_requirement or isinstance(error, AnalysisException | UnsupportedOperationException)


def processors(frame: DataFrame) -> tuple[Processor, ...]:
    """Returns the stateful processors of `frame`, none without access to the plan."""
    return call_internal(frame.sparkSession, PLAN, lambda: _processors(frame), tuple)


def _processors(frame: DataFrame) -> tuple[Processor, ...]:
    names = ((node, node_class(node)) for node in plan_nodes(analyzed(frame)))
    return tuple(
        Processor(name in TRANSFORMS, str((node.timeMode() if name in TRANSFORMS else node.timeout()).toString()))
        for node, name in names
        if name in (*TRANSFORMS, *GROUP_STATES)
    )


_CATALYST = "org.apache.spark.sql.catalyst"

_RULES = ("EliminateSubqueryAliases", "EliminateView")
"""Rules that remove the names of views, in org.apache.spark.sql.catalyst.analysis."""

_PRUNING = ("ColumnPruning", "CollapseProject", "RemoveNoopOperators")
"""Rules that remove columns that no operator above reads, in org.apache.spark.sql.catalyst.optimizer."""


def read_columns(
    frame: DataFrame, inputs: Mapping[str, DataFrame], suspects: Iterable[str]
) -> dict[str, frozenset[str]]:
    """Returns the names of the columns that `frame` reads from each of the `suspects` among its `inputs`.

    If several inputs have the same columns, a second use of one of them is not counted.
    """
    plans = [_pruned(frame, part) for part in _with_subqueries(analyzed(frame))]
    used = {number for plan in plans for number in _used_ids(plan)}
    outputs = {name: _columns(analyzed(item)) for name, item in inputs.items()}
    known = {column for columns in outputs.values() for column in columns}
    # in a second use of an input, its columns have new ids
    again = [leaf for plan in plans for leaf in _leaves(plan) if not known & _columns(leaf).keys()]
    names = [set(columns.values()) for columns in outputs.values()]
    return {
        name: _read(inputs[name], outputs[name], again if names.count(set(outputs[name].values())) == 1 else (), used)
        for name in suspects
    }


def _with_subqueries(plan: Any) -> Iterator[Any]:
    """Yields the plan, and the plans of the subqueries in its expressions."""
    yield plan
    for node in plan_nodes(plan):
        for subquery in seq_items(node.subqueries()):
            yield from _with_subqueries(subquery)


def _used_ids(plan: Any) -> set[int]:
    """Returns the ids of the columns that the operators of `plan` read, and of its own columns."""
    references = (_ids(node.references()) for node in plan_nodes(plan) if node.children().size())
    return _ids(plan.outputSet()).union(*references)


def _read(item: DataFrame, columns: Mapping[int, str], again: Sequence[Any], used: set[int]) -> frozenset[str]:
    kinds = {leaf.getClass().getName() for leaf in _leaves(analyzed(item))}
    alike = [_columns(leaf) for leaf in again if leaf.getClass().getName() in kinds]
    same = (other for other in alike if set(other.values()) == set(columns.values()))
    return frozenset(name for each in (columns, *same) for number, name in each.items() if number in used)


def _pruned(frame: DataFrame, plan: Any) -> Any:
    """Returns `plan`, a part of the plan of `frame`, without columns that no operator above reads."""
    for name in _RULES:
        plan = java_class(frame.sparkSession, f"{_CATALYST}.analysis.{name}").apply(plan)
    pruning = [java_class(frame.sparkSession, f"{_CATALYST}.optimizer.{name}") for name in _PRUNING]
    for _ in range(MAX_PASSES):
        before = plan
        for rule in pruning:
            plan = rule.apply(plan)
        if plan.fastEquals(before):
            break
    return plan


def _columns(plan: Any) -> dict[int, str]:
    """Returns the names of a plan's columns by their ids."""
    return {int(column.exprId().id()): str(column.name()) for column in seq_items(plan.output())}


def _leaves(plan: Any) -> Iterator[Any]:
    return (node for node in plan_nodes(plan) if not node.children().size())


def _ids(attributes: Any) -> set[int]:
    return {int(attribute.exprId().id()) for attribute in seq_items(attributes.toSeq())}
