"""What is wrong in the condition of a join, whatever is joined."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions import Expressions
from sqlstream.compiler.flow.unstable_functions import RANDOM
from sqlstream.compiler.problem import SqlProblem


def condition_problems(condition: exp.Expr, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a problem for each random function in the condition of a join."""
    for call in expressions.calls(condition, RANDOM):
        yield SqlProblem(
            call.where.offset,
            "join-condition",
            f"`{call.name}` cannot stand in the condition of a join",
            "Spark takes only conditions there that say the same each time they are asked",
            "compute it in a subquery before the join, or in WHERE",
        )
