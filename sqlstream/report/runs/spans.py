"""Formats how long ago something was."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlstream.report.numbers import HOUR, MINUTE, seconds_text

DAY = 24 * HOUR
"""Seconds."""

CALENDAR_CYCLE = 146_097 * DAY
"""The seconds of 400 years, after which the calendar repeats."""


def long_seconds_text(seconds: float) -> str:
    """Returns a duration of a minute and more as `seconds_text` does, but `45 s` and `3 days`."""
    if seconds >= 2 * DAY:
        return f"{seconds // DAY:,.0f} days"
    return seconds_text(seconds) if seconds >= MINUTE else f"{seconds:.0f} s"


def since_text(time: str, now: datetime) -> str:
    """Returns the time from `time` (ISO 8601) to `now`, at least 0."""
    try:
        return long_seconds_text(max((now - datetime.fromisoformat(time)).total_seconds(), 0.0))
    except ValueError:
        return "some time"


def epoch_text(seconds: float) -> str:
    """Returns seconds since 1970 as an ISO 8601 time in UTC with seconds. Years outside 1 to 9999 have a sign, as in
    Spark: `+58133-10-17T00:00:00+00:00`.
    """
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        cycles = int(seconds // CALENDAR_CYCLE)
        time = datetime.fromtimestamp(seconds - cycles * CALENDAR_CYCLE, UTC)
        return f"{time.year + 400 * cycles:+05d}{time.isoformat(timespec='seconds')[4:]}"
