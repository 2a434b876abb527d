"""Whether what a subquery gives goes together with what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.operators.join_conditions import text_warning
from sqlstream.compiler.flow.types.families import can_be_compared
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import quoted


def subquery_problems(
    query: exp.Query, columns: Columns | None, scope: Scope, expressions: Expressions
) -> Iterator[SqlProblem]:
    """Gives the problem of `x IN (query)`, or of a comparison with a scalar one, whose types do not go together.

    `columns` are those of the query; `scope` is that of the expression around it.
    """
    around = query.parent
    while isinstance(around, exp.Subquery | exp.Paren):
        around = around.parent
    if not isinstance(around, exp.In | exp.Binary) or columns is None or len(columns) != 1:
        return
    value = around.this
    if isinstance(around, COMPARISONS) and value.find(exp.Query) is not None:
        value = around.expression
    if not isinstance(around, (*COMPARISONS, exp.In)) or value.find(exp.Query) is not None:
        return
    one, other = expressions.type_of(value, scope), columns[0].type
    offset = expressions.text.where(around).offset
    written = expressions.text.written(value)
    if not can_be_compared(one, other):
        what = f"{quoted(written)} has type {one}, but the subquery that it is compared with returns {other}"
        why = "Spark cannot compare these two types"
        fix = "compare a part of the value, or cast one side to the type of the other"
        yield SqlProblem(offset, "type-mismatch", what, why, fix)
    elif isinstance(around, exp.In):
        yield from text_warning(f"{written} in (...)", one, other, offset)
