"""Parsing delays as Spark's interval literals."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.intervals import IntervalError, Span, parse_interval, read_span


@pytest.mark.parametrize(
    ("text", "clause"),
    [
        ("10 minutes", "INTERVAL 10 MINUTES"),
        (" Interval  1 hour\n30 Minutes ", "INTERVAL 1 HOUR 30 MINUTES"),
        ("+1.5 seconds", "INTERVAL 1.5 SECONDS"),
        ("1 year 2 months", "INTERVAL 1 YEAR 2 MONTHS"),
    ],
)
def test_parse_interval(text: str, clause: str) -> None:
    """An interval's clause has the numbers and units in the form that Spark's grammar accepts."""
    assert parse_interval(text).clause == clause


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "10",
        "minutes",
        "10minutes",
        "-1 day",
        "1 day -2 hours",
        "1.5 days",
        "1 fortnight",
        "1 month 1 day",
    ],
)
def test_other_text_is_refused(text: str) -> None:
    """Text that Spark does not accept, or a negative delay, raises an error with a reason and a fix."""
    with pytest.raises(IntervalError) as caught:
        parse_interval(text)
    assert caught.value.why
    assert caught.value.fix


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("10 minutes", Span(0, 600_000_000)),
        (" interval - 10 MINUTES", Span(0, -600_000_000)),
        ("1 day -1 hour", Span(0, 82_800_000_000)),
        ("1 year -1 month .5 seconds", Span(11, 500_000)),
        ("10minutes", None),
        ("1.5 minutes", None),
        ("10", None),
        ("", None),
    ],
)
def test_read_span(text: str, span: Span | None) -> None:
    """Each unit may have its own sign, and an interval that Spark cannot read has no length."""
    assert read_span(text) == span
