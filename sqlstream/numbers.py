"""Formats numbers and times for people."""

from __future__ import annotations

from datetime import UTC, datetime

MINUTE = 60
HOUR = 3600
"""Seconds."""

DAY = 24 * HOUR
"""Seconds."""

CALENDAR_CYCLE = 146_097 * DAY
"""The seconds of 400 years, after which the calendar repeats."""


_UNITS = (("day", DAY), ("hour", HOUR), ("minute", MINUTE), ("second", 1))
"""The units of `span_text`, in seconds, the largest first."""


def count_text(count: int | None) -> str:
    """Returns `1,234`, or `-` for an unknown number."""
    return "-" if count is None else f"{count:,}"


def seconds_text(seconds: float) -> str:
    """Returns a duration as `0.84 s`, `12.3 s`, `2 min 05 s` or `3 h 07 min`."""
    if round(seconds, 2) < 10:
        return f"{seconds:.2f} s"
    if round(seconds, 1) < MINUTE:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    if whole < HOUR:
        return f"{whole // MINUTE} min {whole % MINUTE:02d} s"
    return f"{whole // HOUR} h {whole % HOUR // MINUTE:02d} min"


def plural(count: int | None, word: str, words: str | None = None) -> str:
    """Returns `1 model`, `3 models`, or `- models` for an unknown number. `words` is the plural if it is irregular."""
    return f"{count_text(count)} {word if count == 1 else words or word + 's'}"


def rate_text(rate: float | None) -> str:
    """Returns rows per second as `1,234`, `12.3` or `0.25`, or `-` for an unknown rate."""
    if rate is None:
        return "-"
    return f"{rate:,.0f}" if rate >= 100 or rate == 0 else f"{rate:.1f}" if rate >= 1 else f"{rate:.2f}"


def bytes_text(count: int | None) -> str:
    """Returns a size as `812 B`, `1.5 kB`, `23.0 MB` or `4.1 GB`, or `-` for an unknown size."""
    if count is None:
        return "-"
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:,.1f} {unit}"
    return f"{count} B"


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


def span_text(seconds: float) -> str:
    """Returns a time in its largest unit with at most one decimal, such as `1.5 hours`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    name, size = next(((name, size) for name, size in _UNITS if round(seconds / size, 1) >= 1), _UNITS[-1])
    number = f"{seconds / size:.1f}".removesuffix(".0")
    return f"{number} {name}{'' if number == '1' else 's'}"
