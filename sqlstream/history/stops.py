"""When a query did not run: between two runs, after the process was killed, and while it waits to restart."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstream.history.reads import PastRun, runs_with

_KINDS = "('started', 'restarted', 'failed', 'ended')"
_COLUMNS = "at_ms, kind, run, detail"

MAX_EVENTS = 5_000
"""The most events to read: the newest."""

SMALLEST = 2_000
"""A stop that is shorter than this part of the range is too small to see."""


@dataclass(frozen=True)
class Stop:
    """A time without the query, in ms since 1970. `why`: it `ended`, `failed` for good, its process was `killed`, or it
    was `restarting` after a failure. `is_over`: it ran again at `to_ms`; otherwise that is the end of the range.
    """

    from_ms: int
    to_ms: int
    why: str
    is_over: bool = True

    def is_visible(self, from_ms: int, to_ms: int) -> bool:
        """Returns whether a chart of this range has room for the stop."""
        return self.to_ms - self.from_ms > (to_ms - from_ms) / SMALLEST

    def as_json(self) -> dict[str, Any]:
        """Returns the stop as plain values."""
        return {"from_ms": self.from_ms, "to_ms": self.to_ms, "why": self.why, "is_over": self.is_over}


def read_stops(
    connection: sqlite3.Connection, query: int, from_ms: int, to_ms: int, alive_run: int | None
) -> tuple[Stop, ...]:
    """Returns when a query did not run between two times, in order. `alive_run` is the number of the run in which it
    runs now, if it does. Nothing is known about the time before its first batch in the history.
    """
    events = _events(connection, query, from_ms, to_ms)
    runs = runs_with(connection, {run for _, _, run, _ in events})
    return tuple(stop for stop in _stops(events, runs, to_ms, alive_run) if stop.to_ms > from_ms)


def _events(connection: sqlite3.Connection, query: int, from_ms: int, to_ms: int) -> list[tuple[int, str, int, str]]:
    """Returns the starts and ends of a query in order: the newest of the range, and the last one before these."""
    statement = (
        f"SELECT {_COLUMNS} FROM events WHERE query = ? AND kind IN {_KINDS} AND at_ms BETWEEN ? AND ? "
        "ORDER BY at_ms DESC, id DESC LIMIT ?"
    )
    found = connection.execute(statement, [query, from_ms, to_ms, MAX_EVENTS]).fetchall()[::-1]
    first = found[0][0] if found else to_ms + 1
    is_cut = len(found) == MAX_EVENTS
    before = connection.execute(statement, [query, 0, (first if is_cut else min(first, from_ms)) - 1, 1]).fetchall()
    if not before and found:
        # the journal had no start of this run any more
        statement = (
            "SELECT at_ms, 'started', run, '{}' FROM batches WHERE query = ? AND at_ms < ? ORDER BY at_ms DESC LIMIT 1"
        )
        before = connection.execute(statement, [query, first]).fetchall()
    return [*before, *found]


def _stops(
    events: Sequence[tuple[int, str, int, str]], runs: dict[int, PastRun], to_ms: int, alive_run: int | None
) -> Iterator[Stop]:
    """Yields the stops between events. A run without an end was killed."""
    running: int | None = None
    down: tuple[int, str] | None = None
    for at, kind, run, detail in events:
        if kind == "started":
            if down is None and running not in (None, run):
                down = _end_of(runs.get(running or 0), at)
            if down is not None:
                yield Stop(down[0], at, down[1])
            running, down = run, None
        elif kind == "restarted":
            if down is not None:
                yield Stop(down[0], at, down[1])
            running, down = run, None
        elif kind == "failed":
            down = down or (at, "restarting")
        else:
            why = "failed" if json.loads(detail).get("error") else "ended"
            down = (down[0] if down else at, why)
    if down is None and running not in (None, alive_run):
        down = _end_of(runs.get(running or 0), to_ms)
    if down is not None and down[0] < to_ms:
        yield Stop(down[0], to_ms, down[1], is_over=False)


def _end_of(run: PastRun | None, latest_ms: int) -> tuple[int, str]:
    """Returns the last time (ms) at which a run has written something, and how it ended."""
    if run is None:
        return latest_ms, "ended"
    return min(run.heard_ms, latest_ms), "killed" if run.succeeded is None else "ended"
