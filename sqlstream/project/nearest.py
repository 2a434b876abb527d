"""The candidates most similar to an unknown name."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from sqlstream.project.wording import quoted, quoted_list

__all__ = ["did_you_mean", "nearest", "quoted_list"]

LONGEST_COMPARED = 200
"""The most characters that are compared: difflib takes quadratic time, and no longer name needs a hint."""


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
