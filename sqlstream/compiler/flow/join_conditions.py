"""What is wrong in the condition of a join, whatever is joined."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions import Expressions, parts_of
from sqlstream.compiler.flow.scope import Scope
from sqlstream.compiler.flow.unstable_functions import RANDOM
from sqlstream.compiler.problem import SqlProblem
from sqlstream.project.types import Map
from sqlstream.project.wording import quoted


def condition_problems(condition: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a problem for each random function in the condition of a join, and for each map that is compared."""
    for call in expressions.calls(condition, RANDOM):
        yield SqlProblem(
            call.where.offset,
            "join-condition",
            f"`{call.name}` cannot stand in the condition of a join",
            "Spark takes only conditions there that say the same each time they are asked",
            "compute it in a subquery before the join, or in WHERE",
        )
    for part in condition.find_all(exp.EQ, exp.NullSafeEQ):
        maps = (side for side in (part.this, part.expression) if _is_map(side, scope, expressions))
        name = next((".".join(parts_of(side)) for side in maps), None)
        if name is not None:
            yield SqlProblem(
                expressions.text.where(part).offset,
                "join-condition",
                f"{quoted(name)} is a map, which cannot be compared",
                "the entries of a map have no order, so Spark does not say when two maps are equal",
                f"compare values, as in {name}['key'], or array_sort(map_entries({name}))",
            )


def _is_map(node: exp.Expr, scope: Scope, expressions: Expressions) -> bool:
    return bool(parts_of(node)) and isinstance(expressions.type_of_name(node, scope), Map)
