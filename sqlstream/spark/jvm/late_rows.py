"""Finds the rows that Spark drops because they are behind the watermark. Spark Connect does not show plans.

Over Connect: refused when the project is compiled. The process that writes a batch there gets the rows after the state,
and no row that Spark has dropped before it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.functions import array, col, concat, expr, lit, struct
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.compiler.rewrite.data_tests import ERRORS, QUARANTINE_COLUMNS
from sqlstream.project.wording import quoted_list
from sqlstream.spark.jvm.gateway import (
    analyzed,
    execution_of,
    frame_of_plan,
    node_class,
    plan_nodes,
    seq_items,
    static_frame,
)
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.jvm.plans import WATERMARK, empty_frame_of, has_state, in_last_window, keeps_state

LATE_ROWS = "late_rows"
"""The name in `_errors` of a row that came behind the watermark."""

_DROPPED = "numRowsDroppedByWatermark"
"""The metric of Spark's stateful operators with the number of rows, or groups of rows, that they dropped."""

_GROUPS, _DISTINCT = "Aggregate", "Distinct"

_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")

_SESSION = "spark.sessionWindow"
"""The metadata key of the column of a session window (`SessionWindow.marker`)."""

_MERGES_SESSIONS = "spark.sql.streaming.sessionWindow.merge.sessions.in.local.partition"
"""The setting with which Spark merges the sessions of a batch before it compares them with the watermark."""


class UnknownLateRowsError(Exception):
    """The late rows of a query cannot be known. The message is why: a sentence without a period."""


def rows_before_state(frame: DataFrame) -> DataFrame:
    """Returns the rows of the streaming `frame` as they enter its state, with null in the column `ERRORS`. Spark only
    analyzes them. Raises: UnknownLateRowsError.
    """

    def find() -> DataFrame | str:
        try:
            entry = _entry(frame, analyzed(frame))
        except UnknownLateRowsError as error:
            return str(error)
        return entry.rows.withColumn(ERRORS, lit(None).cast(dict(QUARANTINE_COLUMNS)[ERRORS]))

    found = call_internal(frame.sparkSession, "plan of the state", find, lambda: "this Spark does not show its plans")
    if isinstance(found, str):
        raise UnknownLateRowsError(found)
    return found


def late_rows(query: StreamingQuery) -> DataFrame | None:
    """Returns the rows that the running batch of `query` has dropped because they are behind the watermark, which says
    the column `ERRORS`. They are read again. None if it dropped none; the batch must have been computed.
    """
    batch = execution_of(query).lastExecution()
    operators = [node for node in plan_nodes(batch.executedPlan()) if node.metrics().contains(_DROPPED)]
    if not any(int(node.metrics().apply(_DROPPED).value()) for node in operators):
        return None
    watermark = operators[-1].eventTimeWatermarkForLateEvents()  # of the state that comes first
    return static_frame(_entry(empty_frame_of(batch), batch.logical()).late(int(watermark.get())))


@dataclass(frozen=True)
class _Entry:
    """The rows that enter a state, each once, in columns with positions as names. `time` is SQL for the time that Spark
    compares with the watermark; `named` says what it is, and `columns` are the columns with the event time.
    """

    numbered: DataFrame
    names: tuple[str, ...]
    kept: tuple[int, ...]
    time: str
    named: str
    columns: tuple[str, ...]

    @property
    def rows(self) -> DataFrame:
        """The rows, without the window that the query adds."""
        return self.numbered.select(*(col(f"c{index}").alias(self.names[index]) for index in self.kept))

    def late(self, watermark: int) -> DataFrame:
        """Returns the rows behind a watermark in ms since 1970, with the reason in the column `ERRORS`."""
        is_late = expr(f"unix_micros({self.time}) <= {watermark * 1000}")
        reached = expr(f"timestamp_millis({watermark})").cast("string")
        message = concat(
            lit(f"{self.named} "), expr(self.time).cast("string"), lit(", and the watermark was already at "), reached
        )
        columns = array(*map(lit, self.columns)).cast("array<string>")
        error = struct(lit(LATE_ROWS).alias("name"), message.alias("message"), columns.alias("columns"))
        kept = (col(f"c{index}").alias(self.names[index]) for index in self.kept)
        return self.numbered.where(is_late).select(*kept, array(error).alias(ERRORS))


def _entry(frame: DataFrame, plan: Any) -> _Entry:
    """Returns the rows that enter the first state in `plan`. Raises: UnknownLateRowsError."""
    states = [node for node in plan_nodes(plan) if node.isStreaming() and has_state(node)]
    first = [node for node in states if not any(keeps_state(child) for child in seq_items(node.children()))]
    if not first:
        raise UnknownLateRowsError("it keeps no state, so no row is too late")
    if len(first) > 1 or node_class(first[0]) == "Join":
        raise UnknownLateRowsError("rows of several streams enter its state, and they have different columns")
    (state,) = first
    time = next(_times(state), None)
    if time is None:
        raise UnknownLateRowsError("its state does not depend on a column with a watermark, so no row is too late")
    is_window = time.dataType().typeName() == "struct"
    if time.metadata().contains(_SESSION) and frame.sparkSession.conf.get(_MERGES_SESSIONS) == "true":
        raise UnknownLateRowsError(
            f"with {_MERGES_SESSIONS}, Spark merges the sessions of rows before it drops late ones"
        )
    return _rows(frame, state.child(), int(time.exprId().id()), is_window=is_window)


def _times(state: Any) -> Iterator[Any]:
    """Yields the columns that Spark compares with the watermark; it uses the first."""
    output = seq_items(state.child().output())
    keys = output
    if node_class(state) == _GROUPS:
        by_id = {int(column.exprId().id()): column for column in output}
        named = (key for key in seq_items(state.groupingExpressions()) if node_class(key) == "AttributeReference")
        keys = [by_id[int(key.exprId().id())] for key in named]
    elif node_class(state) not in (_DISTINCT, *_DEDUPLICATIONS):
        raise UnknownLateRowsError("its state belongs to a processor in Python, which decides itself about late rows")
    return (column for column in keys if column.metadata().contains(WATERMARK))


def _rows(frame: DataFrame, plan: Any, time: int, *, is_window: bool) -> _Entry:
    """Returns the rows of `plan`, each once, in which the column with the id `time` is the time of each. Raises:
    UnknownLateRowsError.
    """
    output = seq_items(plan.output())
    (position,) = (index for index, column in enumerate(output) if int(column.exprId().id()) == time)
    names = tuple(str(column.name()) for column in output)
    kept = tuple(index for index in range(len(output)) if not (is_window and index == position))
    counts = Counter(names[index].lower() for index in kept)
    twice = sorted({names[index] for index in kept if counts[names[index].lower()] > 1})
    if twice:
        raise UnknownLateRowsError(f"the rows that enter its state have two columns {quoted_list(twice)}")
    taken = sorted(set(counts).intersection(name for name, _ in QUARANTINE_COLUMNS))
    if taken:
        raise UnknownLateRowsError(f"the rows that enter its state already have {quoted_list(taken)}")
    times = [index for index in kept if output[index].metadata().contains(WATERMARK)]
    columns = tuple(names[index] for index in times)
    if is_window:
        sql, named = f"c{position}.end", "its window ends at"
    else:
        sql, named = f"c{position}", f"`{names[position]}` is"
    numbered = frame_of_plan(frame, in_last_window(frame, plan)).toDF(*(f"c{index}" for index in range(len(output))))
    return _Entry(numbered, names, kept, sql, named, columns)
