"""The columns of UNION, EXCEPT and INTERSECT, and the errors of queries that cannot be combined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.types.common_type import common_type_of
from sqlstream.compiler.flow.types.families import are_incompatible
from sqlstream.compiler.sql.problem import SqlProblem


def united_columns(left: Columns | None, right: Columns | None) -> Columns | None:
    """Returns the columns of a set operation: names and watermarks of the first query, and common types."""
    if left is None or right is None or len(left) != len(right):
        return left
    united = [_united(first, second) for first, second in zip(left, right, strict=True)]
    # `select a, a` has one attribute twice, which stays one unless Spark casts each of them to another type
    same: dict[int, Column] = {}
    for first, column in zip(left, united, strict=True):
        earlier = same.get(id(first), column)
        same[id(first)] = replace(earlier, origins=earlier.origins | column.origins)
    return tuple(
        same[id(first)] if column.type == first.type else column for first, column in zip(left, united, strict=True)
    )


def _united(first: Column, second: Column) -> Column:
    type_ = first.type if first.type == second.type else common_type_of((first.type, second.type))
    return replace(first, type=type_, origins=first.origins | second.origins)


def set_problems(left: Columns | None, right: Columns | None, offset: int, *, by_name: bool) -> Iterator[SqlProblem]:
    """Yields the problems of a set operation of two queries; `offset` is that of the second one."""
    if by_name:
        what = "UNION BY NAME does not exist in Spark SQL"
        why = "UNION matches columns by position; unionByName exists only for DataFrames"
        fix = "remove BY NAME, and select the columns of both queries in the same order"
        yield SqlProblem(offset, "sql-syntax", what, why, fix)
    elif left is not None and right is not None and len(left) != len(right):
        what = f"the first query has {len(left)} columns, but this one has {len(right)}"
        why = "UNION, EXCEPT and INTERSECT match the columns of their queries by position"
        fix = "select the same columns in both; select null as name for a missing one"
        yield SqlProblem(offset, "column-count", what, why, fix)
    else:
        yield from _type_problems(left or (), right or (), offset)


def _type_problems(left: Columns, right: Columns, offset: int) -> Iterator[SqlProblem]:
    for place, (first, second) in enumerate(zip(left, right, strict=False), start=1):
        if are_incompatible(first.type, second.type):
            there = f"column {place} of the first query, `{first.name}`,"
            what = f"`{second.name}` has type {second.type}, but {there} has type {first.type}"
            why = "UNION, EXCEPT and INTERSECT match columns by position, and these two types have no common type"
            fix = "select the columns of both queries in the same order, or cast one of them"
            yield SqlProblem(offset, "column-type", what, why, fix)
