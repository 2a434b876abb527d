"""Checks of one SELECT as a whole: its grouping and positions, and its time windows, of which a query has one.

The rules are those of `TimeWindow.parseExpression`, `TimeWindow.checkInputDataTypes` and
`ResolveTimeWindows.scala` of Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Columns
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, WINDOWS, Expressions
from sqlstream.compiler.flow.expressions.misplaced_functions import Clause, misplaced_functions
from sqlstream.compiler.flow.functions import AGGREGATES
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.flow.operators.grouping import Grouping, position_problems, ungrouped
from sqlstream.compiler.flow.text import Text, computed_items, name_parts
from sqlstream.compiler.flow.type_rules import DATETIMES, INT, kind
from sqlstream.compiler.sql.clauses import at
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.intervals import IntervalError, Span, parse_span
from sqlstream.errors import Severity
from sqlstream.project.types.data_types import DataType, Struct
from sqlstream.project.wording import quoted

CODE = "time-window"

_TIMES = DATETIMES | {"string", "void"}
"""The types that Spark accepts as a time; it casts dates and text."""

_NO_LENGTHS = (exp.Interval, exp.Null, exp.Boolean, exp.Cast, exp.Literal)
_AS_TEXT = "use text, for example '10 minutes'"
_NOT_LITERAL = IntervalError("Spark accepts only a text literal here, or a whole number of microseconds", _AS_TEXT)

_LENGTHS = ("length", "slide", "start")
"""The arguments of `window` after its time."""


@dataclass(frozen=True)
class TimeWindows:
    """Checks the time windows in expressions in `scope`."""

    expressions: Expressions
    scope: Scope

    def problems(self, parts: Iterable[exp.Expr]) -> Iterator[SqlProblem]:
        """Yields the problems of the windows in `parts`, which are the expressions of one operator."""
        found = [call for item in parts for call in self.expressions.text.parts_of(item).functions]
        calls = [part for name, part in found if name in TIME_WINDOWS]
        for call in calls:
            yield from self._of_call(call)
        yield from self._several([call for call in calls if self._name(call) in WINDOWS and not self._is_nested(call)])

    def _name(self, part: exp.Expr) -> str:
        name = self.expressions.text.function(part)
        return name if name in TIME_WINDOWS else ""

    def _is_nested(self, call: exp.Expr) -> bool:
        """Returns whether a window is an argument of another one."""
        parent = call.parent
        while parent is not None and not isinstance(parent, exp.Query) and not self._name(parent):
            parent = parent.parent
        return parent is not None and not isinstance(parent, exp.Query)

    def _of_call(self, call: exp.Expr) -> Iterator[SqlProblem]:
        name, arguments = self._name(call), call.expressions
        if name == "window_time" and len(arguments) == 1:
            yield from self._window_time(call, arguments[0])
        elif name == "session_window" and len(arguments) == 2:
            yield from self._time(call, arguments[0])
            yield from self._gap(arguments[1])
        elif name == "window" and 2 <= len(arguments) <= 4:
            yield from self._time(call, arguments[0])
            yield from self._lengths(arguments[1:])

    def _time(self, call: exp.Expr, time: exp.Expr) -> Iterator[SqlProblem]:
        type_ = self.expressions.type_of(time, self.scope)
        if kind(type_) not in _TIMES | {""} and not _is_window(type_):
            what = f"{quoted(self._name(call))} needs a timestamp, but {quoted(self._written(time))} has type {type_}"
            why = "a window groups timestamps, or the windows of an upstream aggregation"
            fix = f"convert it, for example timestamp_seconds({self._written(time)}) or to_timestamp(...)"
            yield self._problem(time, what, why, fix)

    def _lengths(self, arguments: list[exp.Expr]) -> Iterator[SqlProblem]:
        spans: list[int] = []
        for name, argument in zip(_LENGTHS, arguments, strict=False):
            value = self._literal(argument)
            problem = None if value is None else self._length_problem(name, argument, value)
            yield from [problem] if problem else []
            if problem is not None or not isinstance(value, Span):
                return
            spans.append(value.microseconds)
        yield from self._proportions(arguments, spans)

    def _literal(self, argument: exp.Expr) -> Span | IntervalError | None:
        """Returns the length of a literal, or why Spark rejects it; None if it is unknown."""
        sign, inner = (-1, argument.this) if isinstance(argument, exp.Neg) else (1, argument)
        if isinstance(inner, exp.Literal) and inner.is_string and sign == 1:
            return _read(inner.name)
        if isinstance(inner, exp.Literal) and inner.name.isdecimal():
            return Span(0, sign * int(inner.name))
        # sqlglot reads 10L as a cast
        if isinstance(inner, exp.TryCast) and isinstance(inner.this, exp.Literal) and inner.this.name.isdecimal():
            return Span(0, sign * int(inner.this.name)) if inner.to.is_type("bigint") else _NOT_LITERAL
        is_other = isinstance(inner, _NO_LENGTHS) or name_parts(inner) or self.expressions.text.function(inner)
        return _NOT_LITERAL if is_other else None

    def _length_problem(self, name: str, argument: exp.Expr, value: Span | IntervalError) -> SqlProblem | None:
        if isinstance(value, IntervalError):
            why, fix = value.why, value.fix
        elif value.months:
            why, fix = "months and years vary in length, so they cannot be the length of a window", "use days"
        elif name != "start" and value.microseconds <= 0:
            why, fix = "the length and the slide of a window must be greater than zero", _AS_TEXT
        else:
            return None
        what = f"{quoted(self._written(argument))} is not a valid {name} for a window"
        return self._problem(argument, what, why, fix)

    def _proportions(self, arguments: list[exp.Expr], spans: list[int]) -> Iterator[SqlProblem]:
        length, slide = spans[0], spans[1] if len(spans) > 1 else spans[0]
        if slide > length:
            first, second = map(self._written, arguments[:2])
            what = f"the slide {second} of the window is longer than its length {first}"
            why = "there would be gaps between windows, and rows in the gaps would be in no window"
            order = "the length is the first argument, the slide the second"
            fix = f"make the slide at most as long as the window; {order}"
            yield self._problem(arguments[1], what, why, fix)
        elif len(spans) == len(_LENGTHS) and abs(spans[2]) >= slide:
            what = f"the start {self._written(arguments[2])} of the window is not shorter than its slide"
            why = "the start shifts all windows, by less than one slide"
            yield self._problem(arguments[2], what, why, "subtract the slide from it, or remove the argument")

    def _gap(self, gap: exp.Expr) -> Iterator[SqlProblem]:
        type_, written = self.expressions.type_of(gap, self.scope), self._written(gap)
        if kind(type_) not in ("", "string", "interval", "void"):
            what = f"{quoted(written)} cannot be a session gap: its type is {type_}"
            why = "Spark accepts only text such as '5 minutes' here, or the result of make_interval"
            yield self._problem(gap, what, why, "use text, for example '5 minutes' or concat(seconds, ' seconds')")
        span = _read(gap.name) if isinstance(gap, exp.Literal) and gap.is_string else None
        if isinstance(span, IntervalError):
            what = f"{quoted(written)} cannot be a session gap"
            yield self.expressions.text.problem(gap, CODE, what, span.why, span.fix, Severity.WARNING)
        elif span is not None and span.months <= 0 and span.microseconds <= 0:
            what = f"sessions with the gap {written} contain no rows"
            why = "a session ends this long after its last row, and Spark drops the rows of a session with no length"
            yield self.expressions.text.problem(gap, CODE, what, why, "use a longer gap", Severity.WARNING)

    def _window_time(self, call: exp.Expr, window: exp.Expr) -> Iterator[SqlProblem]:
        type_ = self.expressions.type_of(window, self.scope)
        function = self.expressions.text.function(window)
        if (function and function not in WINDOWS) or (kind(type_) and not _is_window(type_)):
            what = f"the argument {quoted(self._written(window))} of window_time is not a window"
            why = "window_time takes the unchanged column that window() or session_window() returns"
            yield self._problem(call, what, why, "pass that column, for example window_time(window)")

    def _several(self, calls: list[exp.Expr]) -> Iterator[SqlProblem]:
        """Yields a problem for the first window that differs from the first one of the same operator."""
        for call in [call for call in calls[1:] if self._differ(calls[0], call)][:1]:
            first, second = quoted(self._written(calls[0])), quoted(self._written(call))
            why = "Spark does not support several time windows in one query"
            fix = "use the second window in an outer query or a downstream model"
            yield self._problem(call, f"the query uses two time windows: {second} and {first}", why, fix)

    def _differ(self, one: exp.Expr, other: exp.Expr) -> bool:
        """Returns whether two windows are certainly different."""
        if self._name(one) != self._name(other):
            return True
        times = [name_parts(call.expressions[0]) if call.expressions else () for call in (one, other)]
        # `ts` and `t.ts` may be the same column
        if all(times) and times[0][-1].lower() != times[1][-1].lower():
            return True
        spans = [self._spans(call) for call in (one, other)]
        return None not in (*spans[0], *spans[1]) and spans[0] != spans[1]

    def _spans(self, call: exp.Expr) -> list[int | None]:
        """Returns the length, slide and start in microseconds, each None if it is unknown."""
        values = [self._literal(argument) for argument in call.expressions[1:]]
        spans = [value.microseconds if isinstance(value, Span) else None for value in values]
        if self._name(call) == "session_window":
            return spans or [None]
        # by default, a window slides by its length and starts at 0
        return [*spans, *spans[:1]][:2] + (spans[2:] or [0]) if spans else [None]

    def _written(self, node: exp.Expr) -> str:
        return self.expressions.text.written(node)

    def _problem(self, node: exp.Expr, what: str, why: str, fix: str) -> SqlProblem:
        return self.expressions.text.problem(node, CODE, what, why, fix)


def _read(text: str) -> Span | IntervalError:
    """Returns the length that a text describes, or why Spark rejects it."""
    try:
        return parse_span(text)
    except IntervalError as error:
        return error


def _is_window(type_: DataType | None) -> bool:
    return isinstance(type_, Struct) and [field.name.lower() for field in type_.fields] == ["start", "end"]


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
        # after a wrong position, it is uncertain what the query groups by
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
