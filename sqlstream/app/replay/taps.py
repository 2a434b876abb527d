"""Shows the rows of views behind an operator with state, while the query of the model runs a batch again.

Such rows depend on the state, so the view cannot run alone. A tap is an observation on the view, which collects rows.
It must not change what the state contains: Spark removes columns that nobody reads from the state, and moves filters
below it. So a tap may only read columns with which the operators below it stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import array_sort, call_function, col, collect_list, count, lit, struct, to_json

from sqlstream.app.replay.copies import BatchRows
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.spark_versions import minor_version
from sqlstream.spark.jvm.gateway import node_class, optimized, plan_nodes, seq_items
from sqlstream.spark.jvm.plans import STATEFUL_NODES
from sqlstream.spark.reading.inputs import ViewBuilder
from sqlstream.spark.reading.plain_rows import JSON_OPTIONS, columns_of, read_row, readable_schema
from sqlstream.spark.reading.sources import quoted
from sqlstream.state.shown_rows import ShownColumn

OPERATORS = STATEFUL_NODES | {"Join"}
"""Operators whose state a tap must not change."""

_RANDOM_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""The id that each analysis gives to a watermark."""

TAP = "sqlstream_tap_"
"""The prefix of the names of taps."""

FIRST_BOUNDED = (4, 3)
"""The first Spark whose min_by() returns several rows, and so keeps only these in memory."""


@dataclass(frozen=True)
class Tap:
    """The columns of a view that a tap reads; `is_complete`: all columns."""

    view: str
    columns: tuple[ShownColumn, ...]
    is_complete: bool = True

    @property
    def name(self) -> str:
        """The name of the observation."""
        return f"{TAP}{self.view}"

    def rows(self, observed: Mapping[str, Any], limit: int) -> BatchRows | None:
        """Returns the rows that the tap has observed, None if the batch did not run."""
        values = observed.get(self.name)
        if values is None:
            return None
        rows = tuple(read_row(text) for text in (values["rows"] or ())[:limit])
        return BatchRows(self.columns, rows, int(values["count"]))


@dataclass(frozen=True)
class TappedBuilder(ViewBuilder):
    """A `ViewBuilder` that adds taps to views. `limit` is the number of rows that each collects."""

    taps: Mapping[str, Tap] = field(default_factory=dict)
    limit: int = 0

    def build(self, model: CompiledModel, above: tuple[str, ...] = ()) -> DataFrame:
        """Returns the analyzed DataFrame of `model`. Raises: FindingsError."""
        frame = super().build(model, above)
        tap = self.taps.get(model.name) if above else None
        if tap is None:
            return frame
        rows = _collected(frame, [column.name for column in tap.columns], self.limit)
        return frame.observe(tap.name, count(lit(1)).alias("count"), rows.alias("rows"))


def find_tap(builder: TappedBuilder, model: CompiledModel, view: CompiledModel, frame: DataFrame) -> Tap:
    """Returns the tap of `view`, whose rows are `frame`, with as many of its columns as possible. It has none if the
    state does not contain them. Raises: FindingsError, Spark's errors.
    """
    known = set(_stateful(replace(builder, taps={}).build(model)))
    columns = columns_of(frame)

    def is_exact(chosen: Sequence[ShownColumn]) -> bool:
        tap = Tap(view.name, tuple(chosen))
        return set(_stateful(replace(builder, taps={view.name: tap}).build(model), tap.name)) <= known

    if is_exact(columns):
        return Tap(view.name, columns)
    # columns that are fine alone can together still be more than the state has
    kept = tuple(column for column in columns if is_exact([column]))
    return Tap(view.name, kept if kept and is_exact(kept) else (), is_complete=False)


def _stateful(frame: DataFrame, below: str | None = None) -> list[str]:
    """Returns the operators with state of the optimized plan as text, only those below the observation `below` if it is
    given.
    """
    plan = optimized(frame)
    if below is not None:
        plan = next(node for node in plan_nodes(plan) if node_class(node) == "CollectMetrics" and node.name() == below)
    return [_text(node) for node in plan_nodes(plan) if node_class(node) in OPERATORS and node.isStreaming()]


def _text(node: Any) -> str:
    """Returns what the state of an operator depends on. Two analyses of one query return the same text. Of an
    aggregation, these are the groups, the functions and the input, and not the order or the names of its columns.
    """
    plan = node.canonicalized()
    text = str(plan.toString())
    if node_class(node) == "Aggregate":
        found = (part for item in seq_items(plan.aggregateExpressions()) for part in plan_nodes(item))
        functions = sorted({str(part.toString()) for part in found if node_class(part) == "AggregateExpression"})
        groups = [str(item.toString()) for item in seq_items(plan.groupingExpressions())]
        text = "\n".join([*groups, *functions, *(str(child.toString()) for child in seq_items(plan.children()))])
    return _RANDOM_ID.sub("", text)


def _collected(frame: DataFrame, columns: Sequence[str], limit: int) -> Column:
    schema = frame.select(*map(quoted, columns)).schema
    text = to_json(struct(*(col(quoted(name)) for name in columns)).cast(readable_schema(schema)), JSON_OPTIONS)
    if minor_version(frame.sparkSession.version) < FIRST_BOUNDED:
        return call_function("slice", array_sort(collect_list(text)), lit(1), lit(limit))
    return call_function("min_by", text, text, lit(limit))
