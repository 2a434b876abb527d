"""The columns of UNION, EXCEPT and INTERSECT, and what is wrong where two queries cannot be put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.nodes import Node
from sqlstream.compiler.flow.types.common_type import common_type_of
from sqlstream.compiler.flow.types.families import are_incompatible
from sqlstream.compiler.sql.problem import SqlProblem


def united(left: Columns | None, right: Columns | None) -> Columns | None:
    """Returns the columns of a set operation: the names and watermarks of the first query, the types of both."""
    if left is None or right is None or len(left) != len(right):
        return left
    return tuple(
        replace(
            first,
            type=first.type if first.type == second.type else common_type_of((first.type, second.type)),
            origins=first.origins | second.origins,
        )
        for first, second in zip(left, right, strict=True)
    )


def set_problems(left: Node, right: Node, offset: int, *, by_name: bool) -> Iterator[SqlProblem]:
    """Gives what is wrong with two queries as those of a set operation; `offset` is that of the second one."""
    if by_name:
        what = "UNION BY NAME does not exist in Spark SQL"
        why = "UNION matches columns by position; unionByName exists only for DataFrames"
        fix = "remove BY NAME, and select the columns of both queries in the same order"
        yield SqlProblem(offset, "sql-syntax", what, why, fix)
    elif left.columns is not None and right.columns is not None:
        if len(left.columns) != len(right.columns):
            yield _count_problem(len(left.columns), len(right.columns), offset)
        else:
            yield from _type_problems(left.columns, right.columns, offset)


def _count_problem(left: int, right: int, offset: int) -> SqlProblem:
    what = f"the first query has {left} columns, but this one has {right}"
    why = "UNION, EXCEPT and INTERSECT match the columns of their queries by position"
    fix = "select the same columns in both; use null as name for a missing one"
    return SqlProblem(offset, "column-count", what, why, fix)


def _type_problems(left: Columns, right: Columns, offset: int) -> Iterator[SqlProblem]:
    for place, (first, second) in enumerate(zip(left, right, strict=True), start=1):
        if are_incompatible(first.type, second.type):
            what = (
                f"`{second.name}` has type {second.type}, but column {place} of the first query, "
                f"`{first.name}`, has type {first.type}"
            )
            why = "UNION, EXCEPT and INTERSECT match columns by position, and these two types have no common type"
            fix = "select the columns of both queries in the same order, or cast one of them"
            yield SqlProblem(offset, "column-type", what, why, fix)
