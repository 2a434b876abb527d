"""Time series of a query in the form of charts: one list for the times, and one for each value."""

from __future__ import annotations

import sqlite3
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlstream.history.ingest import fact
from sqlstream.history.schema import HOURS_2, KEPT, MINUTES_5
from sqlstream.history.stops import Stop

MAX_POINTS = 5_000
"""The most points that one call returns, about."""

_HOW = {
    "sum": "sum({0})",
    "mean": "sum({0}) * 1.0 / nullif(sum(batches), 0)",  # SQLite drops the rest of a division of integers
    "rate": "sum({0}) / nullif(sum({0}_known), 0)",
    "max": "max({0})",
}

ROLLED = {
    **{figure.column: _HOW[figure.aggregate].format(figure.column) for figure in KEPT if figure.aggregate in _HOW},
    "duration_max_ms": "max(duration_max_ms)",
    "restarts": "coalesce(sum(restarts), 0)",
}
"""How a value of a chart comes from rollups."""

RAW = {**{name: name for name in ROLLED}, "duration_max_ms": "duration_ms", "restarts": "0"}
"""How a value of a chart comes from a single batch."""

QUARANTINED = "quarantined_rows"
"""The rows of the query in quarantine, and those of other queries: corrupt records of the query's sources."""

NAMES = tuple(ROLLED)


@dataclass(frozen=True)
class SeriesRequest:
    """Which values of a query to return, between two times (ms since 1970), in about `points` points. `quarantines`
    are the queries whose output counts as `quarantined_rows`, too. `stops` are the times at which the query did not
    run, and no line crosses them.
    """

    query: int
    from_ms: int
    to_ms: int
    points: int = 800
    names: tuple[str, ...] = NAMES
    quarantines: tuple[int, ...] = ()
    stops: tuple[Stop, ...] = ()


@dataclass(frozen=True)
class Series:
    """`times` are seconds since 1970. `resolution` is `batch`, `5m` or `2h`: where the values come from. `step` is the
    time that one point covers, in seconds; 0 if each point is a batch. A time without any value breaks all lines.
    """

    resolution: str
    step: int
    times: Sequence[float]
    values: dict[str, list[Any]]

    def as_json(self) -> dict[str, Any]:
        """Returns the series as plain values."""
        return {"resolution": self.resolution, "step_seconds": self.step, "t": self.times, "series": self.values}


def read_series(connection: sqlite3.Connection, request: SeriesRequest) -> Series:
    """Returns the values of a query. Single batches if there are few enough and the history still has them, otherwise
    rollups, of which several may make one point.
    """
    points = max(min(request.points, MAX_POINTS), 10)
    if request.from_ms >= fact(connection, "raw_since_ms") and _batches(connection, request) <= 2 * points:
        return _broken(_raw(connection, request), request.stops)
    seconds = max((request.to_ms - request.from_ms) // 1000, 1)
    size = MINUTES_5 if seconds / points < HOURS_2 else HOURS_2
    if request.from_ms // 1000 < _first(connection, request.query, MINUTES_5):
        size = HOURS_2
    return _broken(_rolled(connection, request, size, max(round(seconds / points / size), 1) * size), request.stops)


def _broken(series: Series, stops: Sequence[Stop]) -> Series:
    """Returns the series with a time without values in each stop, and where rollups are missing. A rollup that begins
    in a stop is placed where the stop ends.
    """
    times, found = list(series.times), {name: list(values) for name, values in series.values.items()}
    for stop in stops if series.step else ():
        index = bisect_left(times, stop.from_ms / 1000)
        if stop.is_over and index < len(times) and times[index] < stop.to_ms / 1000 < times[index] + series.step:
            times[index] = stop.to_ms / 1000
    breaks = [(stop.from_ms + stop.to_ms) / 2000 for stop in stops]
    breaks += [at + series.step for at, after in pairwise(times) if series.step and after - at > 2 * series.step]
    for at in breaks:
        index = bisect_left(times, at)
        if 0 < index < len(times) and times[index] != at:
            times.insert(index, at)
            for values in found.values():
                values.insert(index, None)
    return Series(series.resolution, series.step, times, found)


def _batches(connection: sqlite3.Connection, request: SeriesRequest) -> int:
    """Returns about how many batches are in the range, and not more."""
    span = (request.to_ms - request.from_ms) // 1000
    size = MINUTES_5 if span < 100 * HOURS_2 else HOURS_2
    statement = "SELECT sum(batches) FROM rollups WHERE query = ? AND size = ? AND at BETWEEN ? AND ?"
    values = [request.query, size, request.from_ms // 1000 // size * size, request.to_ms // 1000]
    return connection.execute(statement, values).fetchone()[0] or 0


def _first(connection: sqlite3.Connection, query: int, size: int) -> int:
    """Returns the start of the oldest rollup of a size; 0 if no larger one is older."""
    statement = "SELECT min(at) FROM rollups WHERE query = ? AND size = ?"
    found, largest = (connection.execute(statement, [query, each]).fetchone()[0] for each in (size, HOURS_2))
    return 0 if found is None or found - largest < HOURS_2 else int(found)


def _raw(connection: sqlite3.Connection, request: SeriesRequest) -> Series:
    names = [name for name in request.names if name in RAW]
    columns = ", ".join(["at_ms", *(RAW[name] for name in names)])
    statement = f"SELECT {columns} FROM batches WHERE query = ? AND at_ms BETWEEN ? AND ? ORDER BY at_ms"
    rows = connection.execute(statement, [request.query, request.from_ms, request.to_ms]).fetchall()
    times, *values = map(list, zip(*rows, strict=True)) if rows else ([] for _ in range(len(names) + 1))
    found = dict(zip(names, values, strict=True))
    if "restarts" in found:
        statement = "SELECT at_ms, 1 FROM events WHERE query = ? AND at_ms BETWEEN ? AND ? AND kind = 'restarted'"
        happened = connection.execute(statement, [request.query, request.from_ms, request.to_ms]).fetchall()
        found["restarts"] = _placed(times, happened)
    if QUARANTINED in found and request.quarantines:
        found[QUARANTINED] = _added(found[QUARANTINED], _placed(times, _quarantined(connection, request)))
    return Series("batch", 0, [at / 1000 for at in times], found)


def _quarantined(connection: sqlite3.Connection, request: SeriesRequest) -> list[tuple[int, int]]:
    """Returns the times and rows of the batches of the quarantines."""
    statement = "SELECT at_ms, coalesce(rows_out, 0) FROM batches WHERE query = ? AND at_ms BETWEEN ? AND ?"
    return [
        row
        for query in request.quarantines
        for row in connection.execute(statement, [query, request.from_ms, request.to_ms])
    ]


def _placed(times: Sequence[int], counted: Sequence[tuple[int, int]]) -> list[int]:
    """Returns how much was counted until each of `times` since the one before; the last has the rest."""
    found = [0] * len(times)
    for at, count in counted:
        if times:
            found[min(bisect_left(times, at), len(times) - 1)] += count
    return found


def _added(own: Sequence[int | None], corrupt: Sequence[int]) -> list[int]:
    return [(rows or 0) + more for rows, more in zip(own, corrupt, strict=True)]


def _rolled(connection: sqlite3.Connection, request: SeriesRequest, size: int, step: int) -> Series:
    names = [name for name in request.names if name in ROLLED]
    columns = ", ".join([f"at / {step} * {step}", *(ROLLED[name] for name in names)])
    span = [size, request.from_ms // 1000 // size * size, request.to_ms // 1000]
    condition = f"FROM rollups WHERE query = ? AND size = ? AND at BETWEEN ? AND ? GROUP BY at / {step} ORDER BY 1"
    rows = connection.execute(f"SELECT {columns} {condition}", [request.query, *span]).fetchall()
    times, *values = map(list, zip(*rows, strict=True)) if rows else ([] for _ in range(len(names) + 1))
    found = dict(zip(names, values, strict=True))
    if QUARANTINED in found and request.quarantines:
        statement = f"SELECT at / {step} * {step}, coalesce(sum(rows_out), 0) {condition}"
        each = [connection.execute(statement, [query, *span]) for query in request.quarantines]
        corrupt = _placed(times, [row for rows in each for row in rows])
        found[QUARANTINED] = _added(found[QUARANTINED], corrupt)
    return Series("5m" if size == MINUTES_5 else "2h", step, times, found)
