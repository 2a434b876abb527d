"""Finds the columns of its inputs that a query reads, with the pruning rules of Spark's optimizer.

Nothing here works over Spark Connect, which does not expose plans.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm.gateway import analyzed, java_class, seq_items
from sqlstream.spark.jvm.plans import plan_nodes

_CATALYST = "org.apache.spark.sql.catalyst"

_RULES = ("EliminateSubqueryAliases", "EliminateView")
"""Rules that remove the names of views, in org.apache.spark.sql.catalyst.analysis."""

_PRUNING = ("ColumnPruning", "CollapseProject", "RemoveNoopOperators")
"""Rules that remove columns that no operator above reads, in org.apache.spark.sql.catalyst.optimizer."""

MAX_PASSES = 10
"""Each pass prunes one more operator; Spark's own limit is 100."""


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
