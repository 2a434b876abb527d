"""Reads calls of `window` and `session_window`: their length, slide and offset, if they are plain intervals."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from sqlstream.compiler.sql.clauses import split_at_commas
from sqlstream.compiler.sql.intervals import IntervalError, parse_interval
from sqlstream.compiler.sql.tokens import TokenKind, Tokens, tokenize


@dataclass(frozen=True)
class TimeWindow:
    """A call of a window function. `length` is the length of a window or the gap of a session; None if it is not plain.

    Windows start every `slide` (None: at the end of the previous window), counted from 1970-01-01 00:00 UTC plus
    `offset` (org.apache.spark.sql.catalyst.expressions.TimeWindow).
    """

    is_session: bool
    length: timedelta | None
    slide: timedelta | None = None
    offset: timedelta = timedelta(0)


def read_window(text: str) -> TimeWindow | None:
    """Returns a call of a window function; None for any other expression.

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
    """Returns the interval in a text such as `'10 minutes'`; None for other expressions, which a gap can be."""
    is_text = len(argument) == 1 and argument[0].kind is TokenKind.STRING
    return read_span(argument[0].text[1:-1]) if is_text else None


def read_span(text: str) -> timedelta | None:
    """Returns the time of an interval; None if it has none, or cannot be parsed."""
    try:
        return parse_interval(text).span
    except IntervalError:
        return None
