"""All that is looked at in one SELECT as a whole: what it groups by, its time windows, and the positions it names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, Expressions
from sqlstream.compiler.flow.expressions.places import Clause, misplaced_functions
from sqlstream.compiler.flow.functions.known import AGGREGATES
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.operators.grouping import Grouping, position_problems, ungrouped
from sqlstream.compiler.flow.operators.time_windows import TimeWindows
from sqlstream.compiler.flow.text import computed, parts_of
from sqlstream.compiler.sql.problem import SqlProblem


@dataclass(frozen=True)
class SelectChecks:
    """Looks at `select`, whose FROM gives `scope` and whose columns are `output`, None where they are not known."""

    select: exp.Select
    scope: Scope
    grouping: Grouping | None
    output: tuple[Column, ...] | None
    expressions: Expressions

    def run(self, *, is_aggregated: bool) -> None:
        """Notes what is wrong."""
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
        """Whether a column has a name that is surely Spark's, or that of a call, such as `count(1)`, which no word in
        HAVING is: it may use the names that Spark makes up.
        """
        is_call = "`" not in self.expressions.text.sql and self.expressions.text.function(item) in AGGREGATES
        return is_call or isinstance(item, exp.Alias | exp.Aliases) or bool(parts_of(item))

    def _time_windows(self) -> Iterator[SqlProblem]:
        """The select list and the keys are of one operator, WHERE is of another below it."""
        if not self.expressions.text.may_call(TIME_WINDOWS):
            return
        scope = self.scope if self.grouping is None else self.grouping.scope
        keys = () if self.grouping is None else self.grouping.items
        yield from TimeWindows(self.expressions, scope).problems([*keys, *computed(self.select)])
        where = self.select.args.get("where")
        if where is not None:
            yield from TimeWindows(self.expressions, self.scope).problems([where.this])
