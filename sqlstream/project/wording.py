"""How findings name things: names and values as short pieces of one line, and the nearest known name for an unknown
one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from sqlstream.location import printable
from sqlstream.project.secret_text import SecretText

LONGEST_NAME = 80
"""The most characters of a name or value in a message. A longer one would hide the message."""

LONGEST_COMPARED = 200
"""The most characters that are compared: difflib takes quadratic time, and no longer name needs a hint."""


def quoted(name: object) -> str:
    """Returns `name` in back-quotes on one line, shortened to `LONGEST_NAME` characters.

    SQL that begins and ends with a back-quote stays unchanged.
    """
    shown = _shortened(str(name))
    return shown if len(shown) > 2 and shown[0] == shown[-1] == "`" else f"`{shown}`"


def quoted_list(names: Sequence[str], most: int = 8) -> str:
    """Returns at most `most` names in back-quotes, separated by commas, and the number of the others."""
    shown = ", ".join(quoted(name) for name in names[:most])
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


def alternatives(names: Sequence[str]) -> str:
    """Returns names as "`a`, `b` or `c`"."""
    shown = [quoted(name) for name in names]
    return " or ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else "".join(shown)


def given(value: object) -> str:
    """Returns a value in plain words: `the number 5`, `a list`, `empty`, or the text itself."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"the number {_shortened(str(value))}"
    if isinstance(value, str | SecretText):
        return quoted(value)
    return "a mapping" if isinstance(value, dict) else "a list"


def excerpt(text: str, most: int = 4_000) -> str:
    """Returns at most `most` characters of a text for the terminal, and how many more there are."""
    return text if len(text) <= most else f"{text[:most]}… ({len(text) - most:,} more characters)"


def _shortened(text: str) -> str:
    cut = text if len(text) <= LONGEST_NAME else text[:LONGEST_NAME] + "…"
    return printable(cut)


__all__ = ["did_you_mean", "nearest", "quoted_list"]


def nearest(name: str, candidates: Iterable[str], count: int = 3, *, likeness: float = 0.6) -> tuple[str, ...]:
    """Returns at most `count` candidates that resemble `name` in any letter case, the most similar first.

    `likeness` is the least similarity: 1.0 is the same word, 0.6 is difflib's default.
    """
    by_folded: dict[str, list[str]] = {}
    for candidate in dict.fromkeys(candidates):
        by_folded.setdefault(candidate.casefold(), []).append(candidate)
    close = get_close_matches(name[:LONGEST_COMPARED].casefold(), by_folded, n=count, cutoff=likeness)
    return tuple(candidate for folded in close for candidate in by_folded[folded])[:count]


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Returns the phrase for a finding's `fix`: the nearest candidates, or else the known ones, shortened."""
    known = list(dict.fromkeys(candidates))
    close = nearest(name, known)
    if close:
        return f"did you mean {' or '.join(quoted(candidate) for candidate in close)}?"
    if known:
        return f"use {'one of ' if len(known) > 1 else ''}{quoted_list(sorted(known))}"
    return f"declare {quoted(name)} first; none are declared yet"
