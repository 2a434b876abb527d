"""Figures as people read them."""

from __future__ import annotations

MINUTE = 60
HOUR = 3600
"""Seconds."""


def count_text(count: int | None) -> str:
    """Returns `1,234`, or `-` for a figure that is not known."""
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
    """Returns `1 model`, `3 models` or `- models` for a figure that is not known.

    `words` is the plural of `word` where that is not `word` with an s.
    """
    return f"{count_text(count)} {word if count == 1 else words or word + 's'}"
