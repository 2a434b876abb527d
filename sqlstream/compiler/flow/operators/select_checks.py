"""Checks of one SELECT as a whole: its grouping, time windows, positions and HAVING; also of LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, Expressions
from sqlstream.compiler.flow.expressions.places import Clause, misplaced_functions
from sqlstream.compiler.flow.functions.known import AGGREGATES
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.operators.grouping import Grouping, position_problems, ungrouped
from sqlstream.compiler.flow.operators.time_windows import TimeWindows
from sqlstream.compiler.flow.text import Text, computed_items, name_parts
from sqlstream.compiler.flow.types.values import INT, kind
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import quoted

_NEVER_CONSTANT = frozenset({"rand", "randn", "random", "uuid", "shuffle", "input_file_name", "spark_partition_id"})


@dataclass(frozen=True)
class SelectChecks:
    """Checks `select` with the `scope` of its FROM and its `output` columns (None: unknown)."""

    select: exp.Select
    scope: Scope
    grouping: Grouping | None
    output: Columns | None
    expressions: Expressions

    def run(self, *, is_aggregated: bool) -> None:
        """Adds the problems to those of `expressions`."""
        found = list(position_problems(self.select, self.output, self.expressions.text))
        if is_aggregated and not found:
            found += ungrouped(self.select, self.grouping, self.scope, self.output, self.expressions)
        found += self._time_windows()
        order = self.select.args.get("order")
        if order is not None:
            found += misplaced_functions(order, Clause.ORDER_BY, self.expressions.text, correlated=False)
        self.expressions.problems.extend(found)
        having = self.select.args.get("having")
        if having is not None:
            self._check_having(having.this)

    def _check_having(self, condition: exp.Expr) -> None:
        if self.output is None or not all(map(self._is_named, self.select.expressions)):
            text = self.expressions.text
            self.expressions.problems.extend(misplaced_functions(condition, Clause.HAVING, text, correlated=False))
            return
        scope = self.scope if self.grouping is None else self.grouping.scope
        given = {column.name.lower(): column for column in self.output}
        check_expression(self.expressions, condition, replace(scope, aliases={**given, **scope.aliases}), Clause.HAVING)

    def _is_named(self, item: exp.Expr) -> bool:
        """Returns whether the column's name is certain, or is a call such as `count(1)`, which HAVING cannot contain as
        a name: HAVING may use the names that Spark generates.
        """
        is_call = "`" not in self.expressions.text.sql and self.expressions.text.function(item) in AGGREGATES
        return is_call or isinstance(item, exp.Alias | exp.Aliases) or bool(name_parts(item))

    def _time_windows(self) -> Iterator[SqlProblem]:
        """Checks the select list with the keys, which are one operator, and WHERE, which is another below it."""
        if not self.expressions.text.may_call(TIME_WINDOWS):
            return
        scope = self.scope if self.grouping is None else self.grouping.scope
        keys = () if self.grouping is None else self.grouping.items
        yield from TimeWindows(self.expressions, scope).problems([*keys, *computed_items(self.select)])
        where = self.select.args.get("where")
        if where is not None:
            yield from TimeWindows(self.expressions, self.scope).problems([where.this])


def limit_problems(clause: str, value: exp.Expr, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields the problem of a LIMIT or OFFSET that is not a constant, non-negative INT (`checkLimitLikeClause`)."""
    why = _limit_reason(value, expressions)
    if why is not None:
        what = f"{clause.upper()} cannot be {quoted(expressions.text.written(value))}"
        yield SqlProblem(_signed_offset(value, expressions.text), "bad-limit", what, why, "use a whole-number literal")


def _signed_offset(value: exp.Expr, text: Text) -> int:
    """Returns the offset of a value with its sign, whose place sqlglot does not keep."""
    offset = text.where(value).offset
    token = text.token_at(offset)
    is_signed = isinstance(value, exp.Neg) and token is not None and at(text.tokens, token - 1).key == "-"
    return text.tokens[token - 1].start if is_signed and token else offset


def _limit_reason(value: exp.Expr, expressions: Expressions) -> str | None:
    for part in value.walk():
        called = expressions.text.function(part) in _NEVER_CONSTANT
        if name_parts(part) or called or isinstance(part, exp.Query):
            return "Spark needs a constant that it knows before it reads any rows"
    type_ = expressions.type_of(value, Scope())
    if kind(type_) and type_ != INT:
        return f"it has type {type_}, but Spark needs an INT"
    if isinstance(value, exp.Neg) and isinstance(value.this, exp.Literal) and value.this.name.strip("0"):
        return "it is negative"
    return None
