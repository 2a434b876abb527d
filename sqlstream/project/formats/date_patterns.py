"""Patterns with which Spark reads dates and times (https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html).

With an invalid pattern, the query fails or every value is NULL.
"""

from __future__ import annotations

import re

LONGEST = {"G": 5, "y": 6, "D": 3, "M": 5, "L": 5, "S": 9, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5, "a": 1}
"""The most repetitions of a letter; two for letters that are not listed."""

LETTERS = frozenset("GyDMLdahHKkmsSVzOXxZ")
"""The letters that Spark can read: not those of weekdays, weeks and quarters."""

RESERVED = frozenset("{}#")

_QUOTED = re.compile(r"'(?:[^']|'')*'")
_RUN = re.compile(r"([A-Za-z])\1*")


def is_date_pattern(text: str) -> bool:
    """Returns whether Spark can read dates or times with the pattern `text`."""
    bare = _QUOTED.sub("", text)
    if not text or "'" in bare or RESERVED & set(bare):
        return False
    return all(_is_known(run.group()) for run in _RUN.finditer(bare))


def _is_known(run: str) -> bool:
    letter = run[0]
    if letter == "V":
        return len(run) == 2
    return letter in LETTERS and len(run) <= LONGEST.get(letter, 2)
