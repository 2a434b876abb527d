"""Comparisons in join conditions and with subqueries: random functions, and types that Spark cannot compare safely."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqlstream.compiler.flow.columns import Columns, Where
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS
from sqlstream.compiler.flow.functions.known import RANDOM
from sqlstream.compiler.flow.names.problems import name_problem
from sqlstream.compiler.flow.names.scope import ResolvedName, Scope, UnresolvedName
from sqlstream.compiler.flow.types.families import DATETIME, NUMBER, can_be_compared, family
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.errors import Severity
from sqlstream.project.types.types import DataType
from sqlstream.project.wording import quoted

_CAST = {NUMBER: "a number", DATETIME: "a date or timestamp in the session's time zone", "boolean": "true or false"}
"""The families to which Spark casts text beside them, and what the text must then contain."""

_CANNOT_COMPARE = "Spark cannot compare these two types"


def condition_problems(condition: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each random function in a join condition, and a warning for text beside another type."""
    for call in expressions.calls(condition, RANDOM):
        what = f"`{call.name}` is not allowed in a join condition"
        why = "Spark accepts only deterministic join conditions"
        fix = "compute it in a subquery before the join, or in WHERE"
        yield SqlProblem(call.where.offset, "join-condition", what, why, fix)
    text = expressions.text
    for part in (part for part in text.parts_of(condition).parts if isinstance(part, COMPARISONS)):
        sides = [side for side in (part.this, part.args["expression"]) if text.parts_of(side).names]
        if len(sides) == len(("left", "right")):
            left, right = (expressions.type_of(side, scope) for side in sides)
            yield from _text_warning(text.written(part), left, right, text.where(part).offset)


def _text_warning(written: str, left: DataType | None, right: DataType | None, offset: int) -> Iterator[SqlProblem]:
    """Yields the warning for a comparison of text with a type to which Spark casts the text."""
    types = {family(left): left, family(right): right}
    other = next((group for group in types if group in _CAST), None)
    if other is not None and "string" in types:
        what = f"{quoted(written)} compares {left} with {right}"
        why = f"Spark casts each text to {types[other]}, and the query fails for a text that is not {_CAST[other]}"
        casts = "cast(... as string) compares as text, try_cast of the text returns null if it fails"
        yield SqlProblem(offset, "join-type", what, why, f"cast one side explicitly: {casts}", Severity.WARNING)


def using_problems(names: Sequence[str], left: Scope, right: Scope, where: Where) -> Iterator[SqlProblem]:
    """Yields the problems of the columns that USING or NATURAL compares."""
    for name in names:
        found = [Scope(scope.relations).resolve((name,)) for scope in (left, right)]
        missing = [item for item in found if isinstance(item, UnresolvedName)]
        yield from (name_problem(item, (name,), where) for item in missing[:1])
        one, other = (item.column.type if isinstance(item, ResolvedName) else None for item in found)
        if not can_be_compared(one, other):
            what = f"the join column {quoted(name)} has type {one} on one side and {other} on the other"
            fix = "use ON to compare the two columns, and cast one of them"
            yield SqlProblem(where.offset, "type-mismatch", what, _CANNOT_COMPARE, fix)
        yield from _text_warning(name, one, other, where.offset)


def subquery_problems(
    query: exp.Query, columns: Columns | None, scope: Scope, expressions: Expressions
) -> Iterator[SqlProblem]:
    """Yields the problem of `x IN (query)`, or of a comparison with a scalar subquery, if the types do not match.

    `columns` are those of the query. `scope` is that of the expression around it.
    """
    around = query.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    if not isinstance(around, (*COMPARISONS, exp.In)) or columns is None or len(columns) != 1:
        return
    value = around.this
    if not isinstance(around, exp.In) and value.find(exp.Query) is not None:
        value = around.args["expression"]
    if value.find(exp.Query) is not None:
        return
    one, other = expressions.type_of(value, scope), columns[0].type
    written = expressions.text.written(value)
    if not can_be_compared(one, other):
        what = f"{quoted(written)} has type {one}, but the subquery that it is compared with returns {other}"
        fix = "compare a part of the value, or cast one side to the type of the other"
        yield expressions.text.problem(around, "type-mismatch", what, _CANNOT_COMPARE, fix)
    elif isinstance(around, exp.In):
        yield from _text_warning(f"{written} in (...)", one, other, expressions.text.where(around).offset)
