"""All checks of one expression: its names, the places of its functions, and its types."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import Mismatches
from sqlstream.compiler.flow.expressions.places import Clause, misplaced_functions
from sqlstream.compiler.flow.expressions.text_casts import failing_casts
from sqlstream.compiler.flow.functions.arguments import argument_problems, type_problems
from sqlstream.compiler.flow.names.scope import Scope

CONDITIONS = {Clause.WHERE: "the condition of WHERE", Clause.ON: "the condition of the join"}
"""The clauses whose expression must be a boolean, with their names in messages. Spark casts HAVING to boolean."""


def check_expression(expressions: Expressions, node: exp.Expr, scope: Scope, place: Clause) -> None:
    """Adds the problems of `node`, whose names resolve in `scope`, to those of `expressions`."""
    expressions.check(node, scope)
    if isinstance(node, exp.Column) and place not in CONDITIONS:
        return  # most items of a select list are names
    mismatches = Mismatches(expressions, scope)
    found = [*argument_problems(node, expressions.text), *mismatches.problems(node)]
    found += [*type_problems(node, scope, expressions), *failing_casts(node, scope, expressions)]
    if place in CONDITIONS:
        found += mismatches.condition(node, CONDITIONS[place])
    expressions.problems.extend(found)
    correlated = scope.outer is not None
    expressions.problems.extend(misplaced_functions(node, place, expressions.text, correlated=correlated))
