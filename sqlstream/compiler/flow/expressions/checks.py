"""All that is looked at in one expression: its names, where its functions stand, and the types that they take."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.expressions.certain_failures import certain_failures
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import Mismatches
from sqlstream.compiler.flow.expressions.places import Clause, misplaced_functions
from sqlstream.compiler.flow.functions.arguments import argument_problems, type_problems
from sqlstream.compiler.flow.names.scope import Scope

CONDITIONS = {Clause.WHERE: "the condition of WHERE", Clause.ON: "the condition of the join"}
"""Where an expression must be a boolean. Spark casts what HAVING says."""


def check_expression(expressions: Expressions, node: exp.Expr, scope: Scope, place: Clause) -> None:
    """Notes what is wrong in `node`, which stands in `place` and is read in `scope`."""
    expressions.check(node, scope)
    if isinstance(node, exp.Column) and place not in CONDITIONS:
        return  # most of a select list: nothing can be wrong in a name but the name
    mismatches = Mismatches(expressions, scope)
    found = [*argument_problems(node, expressions.text), *mismatches.problems(node)]
    found += [*type_problems(node, scope, expressions), *certain_failures(node, scope, expressions)]
    if place in CONDITIONS:
        found += mismatches.condition(node, CONDITIONS[place])
    expressions.problems.extend(found)
    correlated = scope.outer is not None
    expressions.problems.extend(misplaced_functions(node, place, expressions.text, correlated=correlated))
