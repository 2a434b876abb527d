"""Relations that Spark evaluates when it reads a query: VALUES and `range`, which cannot read columns."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.names.scope import ANYWHERE
from sqlstream.compiler.flow.text import Text
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import quoted


def constant_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Gives a problem for each name in VALUES or in the arguments of `range`, neither of which can read a column."""
    inner = node.this if isinstance(node, exp.Subquery | exp.Table) else node
    is_range = isinstance(inner, exp.Anonymous) and inner.name.lower() == "range"
    if not is_range and not isinstance(inner, exp.Values):
        return
    what = "`range`" if is_range else "VALUES"
    for names, part in text.parts_of(inner).names:
        if names[0].lower() not in ANYWHERE:
            message = f"{what} cannot read the column {quoted('.'.join(names))}"
            why = "Spark evaluates it while it analyzes the query, before it reads any rows"
            fix = "use explode(sequence(1, n)) for numbers, and inline(array(struct(...), ...)) for rows"
            yield SqlProblem(text.where(part).offset, "not-constant", message, why, fix)
