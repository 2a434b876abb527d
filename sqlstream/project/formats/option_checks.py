"""Checks of option values with a syntax: Spark's datetime patterns, and the JSON of Kafka sources.

https://spark.apache.org/docs/latest/sql-ref-datetime-pattern.html; `JsonUtils` of Spark's Kafka connector. With an
invalid pattern, the query fails or every value is NULL.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

LONGEST = {"G": 5, "y": 6, "D": 3, "M": 5, "L": 5, "S": 9, "z": 4, "O": 4, "X": 5, "x": 5, "Z": 5, "a": 1}
"""The most repetitions of a letter; two for letters that are not listed."""

LETTERS = frozenset("GyDMLdahHKkmsSVzOXxZ")
"""The letters that Spark can read: not those of weekdays, weeks and quarters."""

RESERVED = frozenset("{}#")

_QUOTED = re.compile(r"'(?:[^']|'')*'")
_RUN = re.compile(r"([A-Za-z])\1*")

EARLIEST, LATEST = "earliest", "latest"


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


def is_positions(text: str) -> bool:
    """Returns whether `text` is a valid start: earliest, latest, or an offset for each partition."""
    return text.strip().lower() in (EARLIEST, LATEST) or is_numbers_by_partition(text)


def is_offsets(text: str) -> bool:
    """Returns whether `text` is a valid end: latest, or an offset for each partition."""
    return text.strip().lower() == LATEST or is_numbers_by_partition(text)


def is_numbers_by_partition(text: str) -> bool:
    """Returns whether `text` has the form {"topic": {"0": 23}}."""

    def is_valid(value: object) -> bool:
        return isinstance(value, dict) and all(map(_is_number_by_partition, value.items()))

    return _is_by_topic(text, is_valid)


def is_assignment(text: str) -> bool:
    """Returns whether `text` has the form {"topic": [0, 1]}."""
    return _is_by_topic(text, lambda value: isinstance(value, list) and all(map(_is_whole, value)))


def _is_by_topic(text: str, is_valid: Callable[[object], bool]) -> bool:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and all(map(is_valid, read.values()))


def _is_number_by_partition(item: tuple[str, object]) -> bool:
    partition, number = item
    return partition.isascii() and partition.isdigit() and _is_whole(number)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
