"""Calls of `window` and `session_window` as times: length, slide and offset, where they are plain intervals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlstream.compiler.sql.clauses import split_at_commas
from sqlstream.compiler.sql.intervals import IntervalError, parse_interval
from sqlstream.compiler.sql.tokens import Kind, Tokens, tokenize


@dataclass(frozen=True)
class TimeWindow:
    """A call of a window function. `length` is that of a window, or a session's gap; None where it is not plain.

    Windows begin every `slide` (None: where the last one ends), counted from 1970-01-01 00:00 UTC and `offset`
    (org.apache.spark.sql.catalyst.expressions.TimeWindow).
    """

    is_session: bool
    length: timedelta | None
    slide: timedelta | None = None
    offset: timedelta = timedelta(0)


def read_window(text: str) -> TimeWindow | None:
    """Returns the call of a window function that `text` is, None for any other expression.

    `text` is a grouping key in SQL, such as `window(event_time, '10 minutes', '5 minutes')`.
    """
    tokens = tokenize(text)
    name = tokens[0].name.lower() if tokens else ""
    if name not in ("window", "session_window") or len(tokens) < 3 or tokens[1].key != "(":
        return None
    spans = [_span(argument) for argument in list(split_at_commas(tokens[2:-1]))[1:]]
    if not spans or any(span is None for span in spans):
        return TimeWindow(name == "session_window", None)
    slide = spans[1] if len(spans) > 1 else None
    offset = (spans[2] if len(spans) > 2 else None) or timedelta(0)
    return TimeWindow(name == "session_window", spans[0], slide, offset)


def _span(argument: Tokens) -> timedelta | None:
    """The time that the text `'10 minutes'` says, None for anything else: a gap may be an expression."""
    if len(argument) != 1 or argument[0].kind is not Kind.STRING:
        return None
    try:
        return parse_interval(argument[0].text[1:-1]).span
    except IntervalError:
        return None
