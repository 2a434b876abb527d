"""The JSON in options of a Kafka source (`JsonUtils` of Spark's Kafka connector)."""

from __future__ import annotations

import json
from collections.abc import Callable

EARLIEST, LATEST = "earliest", "latest"


def is_positions(text: str) -> bool:
    """Returns whether `text` is a begin: earliest, latest, or an offset for each partition."""
    return text.strip().lower() in (EARLIEST, LATEST) or is_numbers_by_partition(text)


def is_offsets(text: str) -> bool:
    """Returns whether `text` is an end: latest, or an offset for each partition."""
    return text.strip().lower() == LATEST or is_numbers_by_partition(text)


def is_numbers_by_partition(text: str) -> bool:
    """Returns whether `text` has the form {"topic": {"0": 23}}."""

    def fits(value: object) -> bool:
        return isinstance(value, dict) and all(map(_is_number_by_partition, value.items()))

    return _is_by_topic(text, fits)


def is_assignment(text: str) -> bool:
    """Returns whether `text` has the form {"topic": [0, 1]}."""
    return _is_by_topic(text, lambda value: isinstance(value, list) and all(map(_is_whole, value)))


def _is_by_topic(text: str, fits: Callable[[object], bool]) -> bool:
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(read, dict) and all(map(fits, read.values()))


def _is_number_by_partition(item: tuple[str, object]) -> bool:
    partition, number = item
    return partition.isascii() and partition.isdigit() and _is_whole(number)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
