"""Whether a query keeps up with its input. The rules are in docs/ui.md, "Whether a query keeps up"."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from statistics import fmean, median
from typing import Any, Literal

from sqlstream.figures import LAG_COLUMNS
from sqlstream.history.stops import Stop

MOST_BATCHES = 200
"""The number of batches that count, the latest of the range."""

FEWEST_BATCHES = 10
"""With fewer batches nothing is known yet."""

SHORTEST_RISE = 5
"""A burst of fewer batches is no trend."""

NOISE = 3
"""A value within so many usual steps of the lowest one is as low."""

FEWEST_STEPS = 1.5
"""A rise by fewer usual steps from one third to the next is noise around a level."""

BUSY = 0.95
"""The part of the time that batches take if each follows the one before without a pause."""

EXCESS = 1.05
"""Rows arrive faster than they are done only if they do so by this factor."""

STUCK_SECONDS = 60.0
STUCK_BATCHES = 5
"""A batch that takes both longer than this time and than so many usual spans says that the trend is out of date."""

Kind = Literal["keeps_up", "falls_behind", "unknown", "ends"]


@dataclass(frozen=True)
class TimedBatch:
    """One batch: its start (seconds since 1970), its duration, and its rows; `lag` is what was not read after it, by
    unit.
    """

    at: float
    seconds: float
    rows: int | None
    lag: dict[str, int]

    @property
    def end(self) -> float:
        """When the batch ended."""
        return self.at + self.seconds


@dataclass(frozen=True)
class RunningFacts:
    """What is known about a query beside its batches. `ends`: its trigger reads what there is, and ends. `has_batches`:
    Spark reports its batches. `is_limited`: a batch reads at most a part of what there is. `is_running`: the range
    reaches until `now` (seconds since 1970), and the query runs. `lag` is what it has not read now, None if that is
    unknown, and `open_since` the start of the batch that runs now.
    """

    now: float
    ends: bool = False
    has_batches: bool = True
    is_limited: bool = False
    is_running: bool = True
    lag: dict[str, int] | None = None
    open_since: float | None = None


@dataclass(frozen=True)
class Verdict:
    """Whether a query keeps up, and `why` in a sentence. One that falls behind does so by `rate` of `unit` per second.
    `is_now`: it still runs, otherwise this is about the time before.
    """

    kind: Kind
    why: str
    rate: float | None = None
    unit: str | None = None
    is_now: bool = True

    def as_json(self) -> dict[str, Any]:
        """Returns the verdict as plain values."""
        return {"kind": self.kind, "why": self.why, "rate": self.rate, "unit": self.unit, "is_now": self.is_now}


def read_verdict(
    connection: sqlite3.Connection, query: int, from_ms: int, to_ms: int, stops: Sequence[Stop], facts: RunningFacts
) -> Verdict:
    """Returns the verdict about the batches between two times since the last start, at most the latest of them."""
    columns = ", ".join(LAG_COLUMNS.values())
    statement = (
        f"SELECT at_ms, duration_ms, rows_in, run, {columns} FROM batches WHERE query = ? AND at_ms BETWEEN ? AND ? "
        "ORDER BY at_ms DESC LIMIT ?"
    )
    rows = connection.execute(statement, [query, from_ms, to_ms, MOST_BATCHES]).fetchall()
    began = max((stop.to_ms for stop in stops if stop.is_over and rows and stop.to_ms <= rows[0][0]), default=from_ms)
    batches = [
        TimedBatch(at / 1000, (duration or 0) / 1000, read, _known(lags))
        for at, duration, read, run, *lags in reversed(rows)
        if at >= began and run == rows[0][3]
    ]
    return verdict_of(batches, facts)


def _known(lags: Sequence[int | None]) -> dict[str, int]:
    return {unit: value for unit, value in zip(LAG_COLUMNS, lags, strict=True) if value is not None}


def verdict_of(batches: Sequence[TimedBatch], facts: RunningFacts) -> Verdict:
    """Returns the verdict about batches of one start of a query, in order."""
    now = facts.is_running
    if facts.ends:
        return Verdict("ends", "It reads what there is when it starts, and ends.", is_now=now)
    if not facts.has_batches:
        return Verdict("unknown", "Spark reports no batches under this trigger.", is_now=now)
    if len(batches) < FEWEST_BATCHES:
        if now and batches and facts.lag and not any(facts.lag.values()) and facts.open_since is None:
            return Verdict("keeps_up", "It has read all available input.")
        return Verdict("unknown", f"Fewer than {FEWEST_BATCHES} batches since it started, in this range.", is_now=now)
    if now and _is_stuck(batches, facts):
        return Verdict("unknown", "A batch takes much longer than those before it.")
    return _trend(batches, facts)


def _is_stuck(batches: Sequence[TimedBatch], facts: RunningFacts) -> bool:
    span = median(after.at - before.at for before, after in pairwise(batches))
    longest = max(STUCK_SECONDS, STUCK_BATCHES * span)
    return facts.open_since is not None and facts.now - max(facts.open_since, batches[-1].at) > longest


def _trend(batches: Sequence[TimedBatch], facts: RunningFacts) -> Verdict:
    """Returns the verdict about enough batches."""
    now, has_lag = facts.is_running, False
    for unit in ("records", "bytes", "versions"):  # bytes say more than files
        points = [(batch.end, float(batch.lag[unit])) for batch in batches if unit in batch.lag]
        if len(points) >= FEWEST_BATCHES:
            has_lag, rate = True, growth(points)
            if rate is not None:
                return Verdict("falls_behind", "The backlog is growing.", rate, unit, is_now=now)
    rate = None if facts.is_limited else excess(batches)
    if rate is not None:
        why = "Each batch reads more rows than the one before, and none of them waits."
        return Verdict("falls_behind", why, rate, "rows", is_now=now)
    if has_lag:
        return Verdict("keeps_up", "The backlog is not growing.", is_now=now)
    if facts.is_limited:
        why = "The lag is unknown, and each batch reads only a part of what there is."
        return Verdict("unknown", why, is_now=now)
    if not any(batch.rows for batch in batches):
        return Verdict("unknown", "No rows are known to have arrived in this range.", is_now=now)
    return Verdict("keeps_up", "Each batch reads all that has arrived.", is_now=now)


def growth(points: Sequence[tuple[float, float]]) -> float | None:
    """Returns how much the value of `points` (seconds, value) grows per second since its last minimum. None if it
    does not grow: it comes down again and again, this is not longer than an earlier burst, or it is going down.
    """
    values = [value for _, value in points]
    lowest = values.index(min(values))
    points, values = points[lowest:], values[lowest:]  # what came before was a catch-up
    if len(points) <= SHORTEST_RISE:
        return None
    step = median(abs(after - before) for before, after in pairwise(values))
    is_low = [value <= values[0] + NOISE * step for value in values]
    last_low = max(index for index, low in enumerate(is_low) if low)
    longest_burst = max(_lengths(is_low[: last_low + 1]), default=0)
    rise = points[last_low:]
    if len(rise) - 1 < SHORTEST_RISE or len(rise) - 1 <= longest_burst:
        return None
    third = max(len(rise) // 3, 1)
    earlier, later = rise[-2 * third : -third], rise[-third:]
    (began, low), (ended, high) = ((fmean(column) for column in zip(*part, strict=True)) for part in (earlier, later))
    usual = median(abs(after - before) for (_, before), (_, after) in pairwise(rise))
    return (high - low) / (ended - began) if high - low > FEWEST_STEPS * usual else None


def _lengths(is_low: Sequence[bool]) -> Iterator[int]:
    """Yields the lengths of the parts that are not low."""
    for low, part in groupby(is_low):
        if not low:
            yield len(list(part))


def excess(batches: Sequence[TimedBatch]) -> float | None:
    """Returns by how many rows per second more arrive than are done, if the batches grow and follow each other without
    a pause; None otherwise. The first batch of a start is a catch-up.
    """
    points = [(batch.at, float(batch.rows or 0)) for batch in batches[1:]]
    if growth(points) is None:
        return None
    batches = batches[-(len(points) // 2) :]
    pairs = list(pairwise(batches))
    span = sum(after.at - before.at for before, after in pairs)
    busy = sum(before.seconds for before, _ in pairs)
    if span <= 0 or busy < BUSY * span:
        return None
    arrive = sum(after.rows or 0 for _, after in pairs) / span  # what a batch reads has arrived during the one before
    done = sum(before.rows or 0 for before, _ in pairs) / busy
    return arrive - done if arrive > EXCESS * done else None
