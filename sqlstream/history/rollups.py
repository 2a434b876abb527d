"""Rollups: the batches of a query added up over spans of time."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

from sqlstream.history.schema import BATCH_COLUMNS, MAXIMA, ROLLUP_SIZES, SUMS

_ADDED = tuple(
    (name, BATCH_COLUMNS.index(name))
    for name in SUMS
    if name not in ("input_rate", "processed_rate", "rates", "restarts")
)
_HIGHEST = tuple((name, BATCH_COLUMNS.index("duration_ms" if name == "duration_max_ms" else name)) for name in MAXIMA)
_RATES = BATCH_COLUMNS.index("input_rate")
"""The number of the first of two columns."""

_KEY = ("query", "size", "at")
_NAMES = (*_KEY, "batches", *SUMS, *MAXIMA)
_UPSERT = (
    f"INSERT INTO rollups ({', '.join(_NAMES)}) VALUES ({', '.join(['?'] * len(_NAMES))}) "
    "ON CONFLICT (query, size, at) DO UPDATE SET batches = batches + excluded.batches, "
    + ", ".join(
        # unknown counts as nothing, unless everything is unknown
        [
            f"{name} = CASE WHEN {name} IS NULL THEN excluded.{name} ELSE {name} + coalesce(excluded.{name}, 0) END"
            for name in SUMS
        ]
        + [f"{name} = max(coalesce({name}, excluded.{name}), coalesce(excluded.{name}, {name}))" for name in MAXIMA]
    )
)

Key = tuple[int, int, int]
Values = dict[str, float | None]


class Rollups:
    """Adds up rows of batches, and restarts, until they are written."""

    def __init__(self) -> None:
        self._found: dict[Key, Values] = {}

    def add_batches(self, rows: Iterable[Sequence[Any]]) -> None:
        """Adds `rows` of the table of batches."""
        for row in rows:
            for size in ROLLUP_SIZES:
                _add(self._at(row[0], size, row[1]), row)

    def add_restart(self, query: int, at_ms: int) -> None:
        """Adds a restart of a query."""
        for size in ROLLUP_SIZES:
            found = self._at(query, size, at_ms)
            found["restarts"] = (found.get("restarts") or 0) + 1

    def _at(self, query: int, size: int, at_ms: int) -> Values:
        return self._found.setdefault((query, size, at_ms // 1000 // size * size), {})

    def write(self, connection: sqlite3.Connection) -> None:
        """Adds everything to the table, within the caller's transaction."""
        rows = (
            (*key, found.get("batches", 0), *(found.get(name) for name in (*SUMS, *MAXIMA)))
            for key, found in self._found.items()
        )
        connection.executemany(_UPSERT, rows)
        self._found = {}


def _add(found: Values, row: Sequence[Any]) -> None:
    found["batches"] = (found.get("batches") or 0) + 1
    for name, number in _ADDED:
        value = row[number]
        if value is not None:
            found[name] = (found.get(name) or 0) + value
    for name, number in _HIGHEST:
        value = row[number]
        if value is not None and value > (found.get(name) or -1):
            found[name] = value
    rates = row[_RATES], row[_RATES + 1]
    if None not in rates:
        found["rates"] = (found.get("rates") or 0) + 1
        found["input_rate"] = (found.get("input_rate") or 0.0) + rates[0]
        found["processed_rate"] = (found.get("processed_rate") or 0.0) + rates[1]
