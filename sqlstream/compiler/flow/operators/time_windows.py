"""What Spark asks of `window`, `session_window` and `window_time`: their times, their lengths, and one window a query.

The rules are those of `TimeWindow.parseExpression`, `TimeWindow.checkInputDataTypes` and
`ResolveTimeWindows.scala` of Spark 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, WINDOWS, Expressions
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.text import parts_of
from sqlstream.compiler.flow.types.values import DATETIMES, kind
from sqlstream.compiler.sql.intervals import IntervalError, Span, parse_span
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.errors import Severity
from sqlstream.project.types.types import DataType, Struct
from sqlstream.project.wording import quoted

CODE = "time-window"

TIMES = DATETIMES | {"string", "void"}
"""The types that stand for a time; Spark casts dates and text."""

NO_LENGTHS = (exp.Interval, exp.Null, exp.Boolean, exp.Cast, exp.Literal)
NO_LITERAL = "Spark accepts only a text literal here, or a whole number of microseconds"
AS_TEXT = "use text, for example '10 minutes'"
_NOT_LITERAL = IntervalError(NO_LITERAL, AS_TEXT)

LENGTHS = ("length", "slide", "start")
"""What the arguments of `window` after its time say."""


@dataclass(frozen=True)
class TimeWindows:
    """Looks at the time windows in expressions that are read in `scope`."""

    expressions: Expressions
    scope: Scope

    def problems(self, parts: Iterable[exp.Expr]) -> Iterator[SqlProblem]:
        """Gives what is wrong with each window in `parts`, which are of one operator, and with several of them."""
        calls = [
            part
            for item in parts
            for name, part in self.expressions.text.parts_of(item).functions
            if name in TIME_WINDOWS
        ]
        for call in calls:
            yield from self._of_call(call)
        yield from self._several([call for call in calls if self._name(call) in WINDOWS and not self._is_within(call)])

    def _name(self, part: exp.Expr) -> str:
        name = self.expressions.text.function(part)
        return name if name in TIME_WINDOWS else ""

    def _is_within(self, call: exp.Expr) -> bool:
        """Whether a window is what another one is cut from."""
        parent = call.parent
        while parent is not None and not isinstance(parent, exp.Query):
            if self._name(parent):
                return True
            parent = parent.parent
        return False

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
        if kind(type_) in TIMES or not _is_known(type_) or _is_window(type_):
            return
        what = f"{quoted(self._name(call))} needs a timestamp, but {quoted(self._written(time))} has type {type_}"
        why = "a window groups timestamps, or the windows of an upstream aggregation"
        fix = f"convert it, for example timestamp_seconds({self._written(time)}) or to_timestamp(...)"
        yield self._problem(time, what, why, fix)

    def _lengths(self, arguments: list[exp.Expr]) -> Iterator[SqlProblem]:
        spans: list[int] = []
        for what, argument in zip(LENGTHS, arguments, strict=False):
            value = self._literal(argument)
            problem = None if value is None else self._length_problem(what, argument, value)
            if problem is not None:
                yield problem
            if problem is not None or not isinstance(value, Span):
                return
            spans.append(value.microseconds)
        yield from self._proportions(arguments, spans)

    def _literal(self, argument: exp.Expr) -> Span | IntervalError | None:
        """The length that a literal says; why Spark does not take it; or None where that is not known."""
        sign = -1 if isinstance(argument, exp.Neg) else 1
        inner = argument.this if isinstance(argument, exp.Neg) else argument
        if isinstance(inner, exp.Literal) and inner.is_string and sign == 1:
            return _read(inner.name)
        if isinstance(inner, exp.Literal) and inner.name.isdecimal():
            return Span(0, sign * int(inner.name))
        if isinstance(inner, exp.TryCast) and isinstance(inner.this, exp.Literal) and inner.this.name.isdecimal():
            return Span(0, sign * int(inner.this.name)) if inner.to.is_type("bigint") else _NOT_LITERAL
        called = self.expressions.text.function(inner)
        if isinstance(inner, NO_LENGTHS) or parts_of(inner) or called:
            return _NOT_LITERAL
        return None

    def _length_problem(self, what: str, argument: exp.Expr, value: Span | IntervalError) -> SqlProblem | None:
        why, fix = "", AS_TEXT
        if isinstance(value, IntervalError):
            why, fix = value.why, value.fix
        elif value.months:
            why, fix = "months and years vary in length, so they cannot be the length of a window", "use days"
        elif what != "start" and value.microseconds <= 0:
            why = "the length and the slide of a window must be greater than zero"
        message = f"{quoted(self._written(argument))} is not a valid {what} for a window" if why else ""
        return self._problem(argument, message, why, fix) if why else None

    def _proportions(self, arguments: list[exp.Expr], spans: list[int]) -> Iterator[SqlProblem]:
        length, slide = spans[0], spans[1] if len(spans) > 1 else spans[0]
        if slide > length:
            first, second = map(self._written, arguments[:2])
            what = f"the slide {second} of the window is longer than its length {first}"
            why = "there would be gaps between windows, and rows in the gaps would be in no window"
            fix = "make the slide at most as long as the window; the length is the first argument, the slide the second"
            yield self._problem(arguments[1], what, why, fix)
        elif len(spans) == len(LENGTHS) and abs(spans[2]) >= slide:
            what = f"the start {self._written(arguments[2])} of the window is not shorter than its slide"
            why = "the start shifts all windows, by less than one slide"
            fix = "subtract the slide from it, or remove the argument"
            yield self._problem(arguments[2], what, why, fix)

    def _gap(self, gap: exp.Expr) -> Iterator[SqlProblem]:
        type_ = self.expressions.type_of(gap, self.scope)
        if _is_known(type_) and kind(type_) not in ("string", "interval", "void"):
            what = f"{quoted(self._written(gap))} cannot be a session gap: its type is {type_}"
            why = "Spark accepts only text such as '5 minutes' here, or the result of make_interval"
            fix = "use text, for example '5 minutes' or concat(seconds, ' seconds')"
            yield self._problem(gap, what, why, fix)
        span = _read(gap.name) if isinstance(gap, exp.Literal) and gap.is_string else None
        if isinstance(span, IntervalError):
            message = f"{quoted(self._written(gap))} cannot be a session gap"
            where = self.expressions.text.where(gap).offset
            yield SqlProblem(where, CODE, message, span.why, span.fix, Severity.WARNING)
        elif span is not None and span.months <= 0 and span.microseconds <= 0:
            what = f"sessions with the gap {self._written(gap)} contain no rows"
            why = "a session ends this long after its last row, and Spark drops the rows of a session with no length"
            fix = "use a longer gap"
            yield SqlProblem(self.expressions.text.where(gap).offset, CODE, what, why, fix, Severity.WARNING)

    def _window_time(self, call: exp.Expr, window: exp.Expr) -> Iterator[SqlProblem]:
        type_ = self.expressions.type_of(window, self.scope)
        made = self.expressions.text.function(window)
        if (made and made not in WINDOWS) or (_is_known(type_) and not _is_window(type_)):
            what = f"the argument {quoted(self._written(window))} of window_time is not a window"
            why = "window_time takes the unchanged column that window() or session_window() returns"
            fix = "pass that column, for example window_time(window)"
            yield self._problem(call, what, why, fix)

    def _several(self, calls: list[exp.Expr]) -> Iterator[SqlProblem]:
        """Two windows of one operator that are not the same are more than Spark takes."""
        first = calls[0] if calls else None
        for call in calls[1:]:
            if first is not None and self._differ(first, call):
                what = (
                    f"the query uses two time windows: {quoted(self._written(call))} and {quoted(self._written(first))}"
                )
                why = "Spark does not support several time windows in one query"
                fix = "use the second window in an outer query or a downstream model"
                yield self._problem(call, what, why, fix)
                return

    def _differ(self, one: exp.Expr, other: exp.Expr) -> bool:
        """Whether two windows are surely not the same."""
        if self._name(one) != self._name(other):
            return True
        times = [parts_of(call.expressions[0]) if call.expressions else () for call in (one, other)]
        if all(times) and times[0][-1].lower() != times[1][-1].lower():
            return True
        spans = [self._spans(call) for call in (one, other)]
        return None not in (*spans[0], *spans[1]) and spans[0] != spans[1]

    def _spans(self, call: exp.Expr) -> list[int | None]:
        """Length, slide and start in microseconds; what is not known is None."""
        read = [self._literal(argument) for argument in call.expressions[1:]]
        spans = [value.microseconds if isinstance(value, Span) else None for value in read]
        if self._name(call) == "session_window":
            return spans or [None]
        return [*spans, *spans[:1]][:2] + (spans[2:] or [0]) if spans else [None]

    def _written(self, node: exp.Expr) -> str:
        return self.expressions.text.written(node)

    def _problem(self, node: exp.Expr, message: str, why: str, fix: str) -> SqlProblem:
        return SqlProblem(self.expressions.text.where(node).offset, CODE, message, why, fix)


def _read(text: str) -> Span | IntervalError:
    """The length that a text says, or why Spark cannot read it."""
    try:
        return parse_span(text)
    except IntervalError as error:
        return error


def _is_known(type_: DataType | None) -> bool:
    """Whether a type is one that rules speak of."""
    return kind(type_) != ""


def _is_window(type_: DataType | None) -> bool:
    names = [field.name.lower() for field in type_.fields] if isinstance(type_, Struct) else []
    return names == ["start", "end"]
