"""What a source has that a query has not read yet: from Spark's progress of a batch, or from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Unread:
    """What a query had left to read at the Unix time `at`, by source and unit (`files`, `bytes` or `versions`)."""

    at: float
    sources: Mapping[str, Mapping[str, int]]


def source_backlog(source: Mapping[str, Any]) -> dict[str, int]:
    """Returns the backlog of a source after a batch: the `records` of Kafka; empty for other sources, of which Spark
    does not report it. `source` is an entry of `sources` in a `StreamingQueryProgress` as JSON.
    """
    read, latest = (_positions(source.get(key)) for key in ("endOffset", "latestOffset"))
    if not read or not latest:
        return {}
    return {"records": sum(max(last - read.get(partition, last), 0) for partition, last in latest.items())}


def _positions(offset: object) -> dict[tuple[str, str], int]:
    """Returns the positions of an offset of Kafka by topic and partition, empty for other sources."""
    with suppress(ValueError, TypeError):
        loaded = json.loads(offset) if isinstance(offset, str) else offset
        return dict(_entries(loaded)) if isinstance(loaded, dict) else {}
    return {}


def _entries(offset: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for topic, partitions in offset.items():
        if not isinstance(partitions, dict):
            return
        for partition, position in partitions.items():
            yield (topic, partition), int(position)
