"""What is wrong in the condition of a join, whatever is joined: random functions, and types that do not go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from sqlstream.compiler.flow.columns import Where
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS
from sqlstream.compiler.flow.expressions.unstable_functions import RANDOM
from sqlstream.compiler.flow.names.problems import name_problem
from sqlstream.compiler.flow.names.scope import Missing, Resolved, Scope
from sqlstream.compiler.flow.types.families import DATETIME, NUMBER, can_be_compared, family
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.errors import Severity
from sqlstream.project.types.types import DataType
from sqlstream.project.wording import quoted

_CAST = {NUMBER: "a number", DATETIME: "a date or timestamp in the session's time zone", "boolean": "true or false"}
"""The families that Spark casts text to beside them, and what it must then hold."""


def condition_problems(condition: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a problem for each random function in the condition of a join, and for text beside another type."""
    for call in expressions.calls(condition, RANDOM):
        what = f"`{call.name}` is not allowed in a join condition"
        why = "Spark accepts only deterministic join conditions"
        fix = "compute it in a subquery before the join, or in WHERE"
        yield SqlProblem(call.where.offset, "join-condition", what, why, fix)
    yield from text_comparisons(condition, scope, expressions)


def text_comparisons(condition: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a warning for each comparison of a column of text with one of a type that Spark casts text to."""
    text = expressions.text
    for part in text.parts_of(condition).parts:
        if isinstance(part, COMPARISONS):
            sides = [side for side in (part.this, part.args["expression"]) if text.parts_of(side).names]
            if len(sides) == len(("left", "right")):
                left, right = (expressions.type_of(side, scope) for side in sides)
                yield from text_warning(text.written(part), left, right, text.where(part).offset)


def text_warning(written: str, left: DataType | None, right: DataType | None, offset: int) -> Iterator[SqlProblem]:
    """Gives the warning of a comparison of values of two types, one of which is text and is cast to the other."""
    types = {family(left): left, family(right): right}
    other = next((group for group in types if group in _CAST), None)
    if other is None or "string" not in types:
        return
    what = f"{quoted(written)} compares {left} with {right}"
    why = f"Spark casts each text to {types[other]}, and the query fails for a text that is not {_CAST[other]}"
    fix = (
        "cast one side explicitly: cast(... as string) compares as text, try_cast of the text returns null if it fails"
    )
    yield SqlProblem(offset, "join-type", what, why, fix, Severity.WARNING)


def using_problems(names: Sequence[str], left: Scope, right: Scope, where: Where) -> Iterator[SqlProblem]:
    """Gives what is wrong with the types of the columns `names` that USING or NATURAL compares."""
    for name in names:
        found = [Scope(scope.relations).resolve((name,)) for scope in (left, right)]
        missing = next((item for item in found if isinstance(item, Missing)), None)
        if missing is not None:
            yield name_problem(missing, (name,), where)
        one, other = (item.column.type if isinstance(item, Resolved) else None for item in found)
        if not can_be_compared(one, other):
            what = f"the join column {quoted(name)} has type {one} on one side and {other} on the other"
            why = "Spark cannot compare these two types"
            fix = "use ON to compare the two columns, and cast one of them"
            yield SqlProblem(where.offset, "type-mismatch", what, why, fix)
        yield from text_warning(name, one, other, where.offset)
