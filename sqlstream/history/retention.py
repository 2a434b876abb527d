"""The bound of the history: removes raw batches whose rollups remain."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from sqlstream.history.ingest import fact, set_fact, transaction
from sqlstream.history.schema import HOURS_2, MINUTES_5

DAY_MS = 86_400_000
KEPT_AFTER_CUT = 0.95
"""The part of the maximum that stays when there are too many batches, so that a cut is rare."""


@dataclass(frozen=True)
class Bound:
    """How much of the history to keep. Rollups of two hours stay: 12 rows per query and day."""

    batches: int = 1_000_000
    batch_days: int = 30
    rollup_days: int = 90
    event_days: int = 365


def apply_bound(connection: sqlite3.Connection, bound: Bound, now_ms: int) -> int:
    """Removes what is beyond `bound`; returns the number of removed batches.

    Batches go by the start of a whole rollup, so that raw batches and rollups never show parts of the same span.
    """
    with transaction(connection):
        start = max(fact(connection, "raw_since_ms"), _start_of(now_ms - bound.batch_days * DAY_MS))
        kept = fact(connection, "batches")
        if kept > bound.batches:
            start = max(start, _start_for(connection, start, kept - int(bound.batches * KEPT_AFTER_CUT)))
        removed = 0
        if start > fact(connection, "raw_since_ms"):
            removed = _remove_batches(connection, start)
            set_fact(connection, "batches", kept - removed)
            set_fact(connection, "raw_since_ms", start)
            _remove_older(connection, bound, now_ms)
    return removed


def _start_of(at_ms: int) -> int:
    return at_ms // 1000 // HOURS_2 * HOURS_2 * 1000


def _start_for(connection: sqlite3.Connection, start: int, surplus: int) -> int:
    """Returns the start of the first rollup to keep, if `surplus` batches from `start` on must go."""
    statement = "SELECT at, sum(batches) FROM rollups WHERE size = ? AND at >= ? GROUP BY at ORDER BY at"
    for at, count in connection.execute(statement, [HOURS_2, start // 1000]):
        if surplus <= 0:
            return int(at) * 1000
        surplus -= count
    return start


def _remove_batches(connection: sqlite3.Connection, start: int) -> int:
    removed = 0
    for (query,) in connection.execute("SELECT id FROM queries").fetchall():
        statement = "DELETE FROM batches WHERE query = ? AND at_ms < ?"
        removed += connection.execute(statement, [query, start]).rowcount
    return removed


def _remove_older(connection: sqlite3.Connection, bound: Bound, now_ms: int) -> None:
    """Removes small rollups, whose large ones remain, and old events."""
    oldest = now_ms // 1000 - bound.rollup_days * DAY_MS // 1000
    for (query,) in connection.execute("SELECT id FROM queries").fetchall():
        values = [query, MINUTES_5, oldest]
        connection.execute("DELETE FROM rollups WHERE query = ? AND size = ? AND at < ?", values)
        values = [query, now_ms - bound.event_days * DAY_MS]
        connection.execute("DELETE FROM events WHERE query = ? AND at_ms < ?", values)
