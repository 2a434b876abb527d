"""Formats numbers for people."""

from __future__ import annotations

MINUTE = 60
HOUR = 3600
"""Seconds."""


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
