"""Which columns of its inputs a query reads, as Spark's optimizer prunes them.

Nothing here works over Spark Connect: there is no plan to look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.spark.jvm.gateway import analyzed, java_class
from sqlstream.spark.running.plans import plan_nodes

_CATALYST = "org.apache.spark.sql.catalyst"

_RULES = ("EliminateSubqueryAliases", "EliminateView")
"""What takes away the names of views, in org.apache.spark.sql.catalyst.analysis."""

_PRUNING = ("ColumnPruning", "CollapseProject", "RemoveNoopOperators")
"""What leaves each operator the columns that those above it read, in org.apache.spark.sql.catalyst.optimizer."""

MOST_PASSES = 10
"""Each pass prunes one operator more; Spark itself stops after 100."""


def read_columns(
    frame: DataFrame, inputs: Mapping[str, DataFrame], suspects: Iterable[str]
) -> dict[str, frozenset[str]]:
    """Returns the names of the columns that the analysed `frame` reads of each of the `suspects` among `inputs`, which
    are part of it. What is read a second time of one of several inputs with the same columns is left out.
    """
    plans = [_pruned(frame, part) for part in _parts(analyzed(frame))]
    used: set[int] = set()
    for plan in plans:
        for node in plan_nodes(plan):
            if node.children().size():
                used |= _ids(node.references())
        used |= _ids(plan.outputSet())
    outputs = {name: _columns(analyzed(item)) for name, item in inputs.items()}
    known = {column for columns in outputs.values() for column in columns}
    # Spark gives new ids to the columns of what a query reads a second time
    again = [leaf for plan in plans for leaf in _leaves(plan) if not known & _columns(leaf).keys()]
    names = [set(columns.values()) for columns in outputs.values()]
    return {
        name: _read(inputs[name], outputs[name], again if names.count(set(outputs[name].values())) == 1 else (), used)
        for name in suspects
    }


def _parts(plan: Any) -> Iterator[Any]:
    """The plan, and those of the subqueries in its expressions."""
    yield plan
    for node in plan_nodes(plan):
        subqueries = node.subqueries()
        for index in range(subqueries.size()):
            yield from _parts(subqueries.apply(index))


def _read(item: DataFrame, columns: Mapping[int, str], again: Sequence[Any], used: set[int]) -> frozenset[str]:
    kinds = {leaf.getClass().getName() for leaf in _leaves(analyzed(item))}
    alike = [_columns(leaf) for leaf in again if leaf.getClass().getName() in kinds]
    same = (other for other in alike if set(other.values()) == set(columns.values()))
    return frozenset(name for each in (columns, *same) for number, name in each.items() if number in used)


def _pruned(frame: DataFrame, plan: Any) -> Any:
    """The plan, a part of `frame`, in which each operator has the columns that those above it read."""
    for name in _RULES:
        plan = java_class(frame.sparkSession, f"{_CATALYST}.analysis.{name}").apply(plan)
    pruning = [java_class(frame.sparkSession, f"{_CATALYST}.optimizer.{name}") for name in _PRUNING]
    for _ in range(MOST_PASSES):
        before = plan
        for rule in pruning:
            plan = rule.apply(plan)
        if plan.fastEquals(before):
            break
    return plan


def _columns(plan: Any) -> dict[int, str]:
    """The names of a plan's columns by their ids."""
    output = plan.output()
    columns = (output.apply(index) for index in range(output.size()))
    return {int(column.exprId().id()): str(column.name()) for column in columns}


def _leaves(plan: Any) -> Iterator[Any]:
    return (node for node in plan_nodes(plan) if not node.children().size())


def _ids(attributes: Any) -> set[int]:
    listed = attributes.toSeq()
    return {int(listed.apply(index).exprId().id()) for index in range(listed.size())}
