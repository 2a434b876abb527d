"""Queries on the history: runs, the newest state of each query, batches, events."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlstream.history.schema import BATCH_COLUMNS, HOURS_2, MINUTES_5

_BATCH_NAMES = BATCH_COLUMNS[1:]
_SELECT_BATCH = f"SELECT {', '.join(_BATCH_NAMES)}"

MAX_ROWS = 1_000
"""The most rows that one call returns."""

MAX_RUNS = 200
"""The number of runs to keep, the newest, besides those with the newest entry of a query."""


@dataclass(frozen=True)
class PastRun:
    """A recorded run: its process, and the times of its first and last entry (UTC, ISO 8601). `succeeded` is None if it
    has not reported its end. `number` identifies it in the history. `queries` has the entries of its queries by model,
    as in run_results.json with their times in `heard_at`, unless a later run has them.
    """

    invocation_id: str
    target: str | None = None
    pid: int | None = None
    process_start: str | None = None
    began_at: str = ""
    heard_at: str = ""
    succeeded: bool | None = None
    number: int = 0
    sqlstream_version: str | None = None
    spark_version: str | None = None
    queries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def heard_ms(self) -> int:
        """The time of the last entry in milliseconds since 1970."""
        return round(datetime.fromisoformat(self.heard_at).timestamp() * 1000)


@dataclass(frozen=True)
class StoredQuery:
    """A query in the history, with its newest entry as in run_results.json and the number of the run that wrote it."""

    number: int
    target: str
    model: str
    run: int | None
    heard_at: str
    entry: Mapping[str, Any]


def revision(connection: sqlite3.Connection) -> int:
    """Returns a number that grows with everything that is written."""
    row = connection.execute("SELECT value FROM facts WHERE name = 'revision'").fetchone()
    return int(row[0]) if row else 0


def changed_runs(connection: sqlite3.Connection, after: int) -> tuple[PastRun, ...]:
    """Returns the runs that changed after the revision `after`, in the order of their start, without their queries."""
    return _runs(connection, "revision > ?", [after])


def past_runs(connection: sqlite3.Connection) -> tuple[PastRun, ...]:
    """Returns the newest runs, and all that have the newest entry of a query, in the order of their start."""
    queries: dict[int | None, dict[str, Mapping[str, Any]]] = {}
    for query in filter(lambda each: each.entry, changed_queries(connection, -1)):
        queries.setdefault(query.run, {})[query.model] = {**query.entry, "heard_at": query.heard_at}
    condition = "id IN (SELECT run FROM queries) OR id IN (SELECT id FROM runs ORDER BY began_at DESC LIMIT ?)"
    return tuple(replace(run, queries=queries.get(run.number, {})) for run in _runs(connection, condition, [MAX_RUNS]))


def runs_with(connection: sqlite3.Connection, numbers: Collection[int]) -> dict[int, PastRun]:
    """Returns the runs with these numbers, without their queries."""
    marks = ", ".join("?" * len(numbers))
    return {run.number: run for run in _runs(connection, f"id IN ({marks})", list(numbers))}


def _runs(connection: sqlite3.Connection, condition: str, values: Sequence[Any]) -> tuple[PastRun, ...]:
    statement = (
        "SELECT invocation, target, pid, process_start, began_at, heard_at, succeeded, id, sqlstream_version, "
        f"spark_version FROM runs WHERE {condition} ORDER BY began_at, id"
    )
    runs = (PastRun(*row) for row in connection.execute(statement, values))
    return tuple(run if run.succeeded is None else replace(run, succeeded=bool(run.succeeded)) for run in runs)


def changed_queries(connection: sqlite3.Connection, after: int) -> tuple[StoredQuery, ...]:
    """Returns the queries that changed after the revision `after`."""
    statement = "SELECT id, target, model, run, heard_at, entry FROM queries WHERE revision > ?"
    found = (StoredQuery(*row) for row in connection.execute(statement, [after]))
    return tuple(replace(query, entry=json.loads(str(query.entry)) if query.entry else {}) for query in found)


def first_batch_ms(connection: sqlite3.Connection, target: str) -> int | None:
    """Returns the start of the oldest rollup of a target, None without any."""
    first = "SELECT min(at) FROM rollups WHERE query = queries.id AND size = ?"  # one look into the index per query
    row = connection.execute(f"SELECT min(({first})) FROM queries WHERE target = ?", [HOURS_2, target]).fetchone()
    return None if row[0] is None else int(row[0]) * 1000


def lacks_batches(connection: sqlite3.Connection, target: str) -> bool:
    """Returns whether a query of a target had batches that the history never had. Of those that it has removed, it
    still has rollups.
    """
    before = "SELECT 1 FROM rollups WHERE query = queries.id AND size = ? AND (at + size) * 1000 <= at_ms"
    first = f"SELECT batch_id > 0 AND NOT EXISTS({before}) FROM batches WHERE query = queries.id ORDER BY at_ms LIMIT 1"
    statement = f"SELECT EXISTS(SELECT 1 FROM queries WHERE target = ? AND ({first}))"
    return bool(connection.execute(statement, [target, HOURS_2]).fetchone()[0])


def latest_batches(
    connection: sqlite3.Connection, query: int, names: Sequence[str], count: int, after_ms: int = -1
) -> list[tuple[Any, ...]]:
    """Returns the columns `names` of the latest `count` batches that began after `after_ms`, the oldest first."""
    statement = (
        f"SELECT {', '.join(names)} FROM batches WHERE query = ? AND at_ms > ? "
        "ORDER BY at_ms DESC, run DESC, batch_id DESC LIMIT ?"
    )
    return connection.execute(statement, [query, after_ms, count]).fetchall()[::-1]


@dataclass(frozen=True)
class Page:
    """Which batches to return: those between two times (ms since 1970), the newest or the slowest `limit` of them.
    `before` continues a page of the newest: it is the time of the last batch of that page.
    """

    from_ms: int = 0
    to_ms: int = 1 << 53
    slowest: bool = False
    limit: int = 100
    before: int | None = None

    @property
    def end_ms(self) -> int:
        """The end, which is not included with `before`."""
        return self.to_ms if self.before is None else min(self.to_ms, self.before - 1)

    @property
    def rows(self) -> int:
        """The number of rows to return."""
        return max(min(self.limit, MAX_ROWS), 1)


def batch_rows(connection: sqlite3.Connection, query: int, page: Page) -> list[dict[str, Any]]:
    """Returns batches with their offsets and durations."""
    if page.slowest:
        rows = _slowest(connection, query, page)
    else:
        statement = (
            f"{_SELECT_BATCH} FROM batches WHERE query = ? AND at_ms BETWEEN ? AND ? "
            "ORDER BY at_ms DESC, run DESC, batch_id DESC LIMIT ?"
        )
        rows = connection.execute(statement, [query, page.from_ms, page.end_ms, page.rows]).fetchall()
    return [_batch(row) for row in rows]


def _slowest(connection: sqlite3.Connection, query: int, page: Page) -> list[tuple[Any, ...]]:
    """Returns the slowest batches. The n slowest are in the n rollups with the highest maxima, and in the two at the
    ends, which are only partly in the range.
    """
    first, last = (each // 1000 // MINUTES_5 * MINUTES_5 for each in (page.from_ms, page.to_ms))
    statement = (
        "SELECT at FROM rollups WHERE query = ? AND size = ? AND at > ? AND at < ? "
        "ORDER BY duration_max_ms DESC, at DESC LIMIT ?"
    )
    found = connection.execute(statement, [query, MINUTES_5, first, last, page.rows]).fetchall()
    spans = {first, last, *(row[0] for row in found)}
    rows: list[tuple[Any, ...]] = []
    for at in spans:
        low, high = max(at * 1000, page.from_ms), min((at + MINUTES_5) * 1000 - 1, page.to_ms)
        statement = f"{_SELECT_BATCH} FROM batches WHERE query = ? AND at_ms BETWEEN ? AND ?"
        rows += connection.execute(statement, [query, low, high]).fetchall()
    number = _BATCH_NAMES.index("duration_ms")
    return sorted(rows, key=lambda row: (-row[number], -row[0]))[: page.rows]


def _batch(row: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(_BATCH_NAMES, row, strict=True))
    names = ("name", "start_offset", "end_offset", "rows_in")
    found["sources"] = [dict(zip(names, source, strict=True)) for source in json.loads(found["sources"] or "[]")]
    return found


def events_of(
    connection: sqlite3.Connection, query: int, from_ms: int, to_ms: int, limit: int, kinds: Sequence[str] = ()
) -> Iterator[dict[str, Any]]:
    """Yields what happened to a query, the newest first: events of `kinds`, by default all."""
    chosen = f"AND kind IN ({', '.join('?' * len(kinds))}) " if kinds else ""
    statement = (
        "SELECT events.id, at_ms, kind, invocation, detail FROM events JOIN runs ON runs.id = events.run "
        f"WHERE query = ? AND at_ms BETWEEN ? AND ? {chosen}ORDER BY at_ms DESC, events.id DESC LIMIT ?"
    )
    values = [query, from_ms, to_ms, *kinds, max(min(limit, MAX_ROWS), 1)]
    for number, at_ms, kind, invocation, detail in connection.execute(statement, values).fetchall():
        yield {"id": number, "at_ms": at_ms, "kind": kind, "run": invocation, "detail": json.loads(detail)}


_LIFE = ("started", "restarted", "failed", "ended")
_BATCH = re.compile(r" in batch (\d+)")
"""The number of the batch in a message, for journals in which the finding has no field for it."""


def failures_beside(
    connection: sqlite3.Connection, query: int, page: Page, rows: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Returns the failures of a query between the batches `rows` of a page of the newest, the newest first. `batch_id`
    is None if the query did not fail in a batch. `restarts_in` are the seconds until it was to restart, None if it was
    not, and `restarted` says whether it did.
    """
    is_last = len(rows) < page.rows
    first = page.from_ms if is_last else rows[-1]["at_ms"]
    events = list(events_of(connection, query, first, page.end_ms, MAX_ROWS, kinds=_LIFE))
    after = [_kind_after(connection, query, page.end_ms), *(event["kind"] for event in events)]
    found = []
    for number, event in enumerate(events):
        finding = _finding(event)
        if finding is None or (event["kind"] == "ended" and _repeats(finding, events[number + 1 : number + 2])):
            continue
        found.append(
            {
                "at_ms": event["at_ms"],
                "batch_id": _batch_of(finding),
                "message": str(finding.get("message") or ""),
                "why": finding.get("why"),
                "restarts_in": event["detail"].get("delay_seconds"),
                "restarted": after[number] == "restarted",
            }
        )
    return found


def _kind_after(connection: sqlite3.Connection, query: int, at_ms: int) -> str | None:
    """Returns the kind of the first event after a time that starts or ends a query."""
    marks = ", ".join("?" * len(_LIFE))
    statement = (
        f"SELECT kind FROM events WHERE query = ? AND at_ms > ? AND kind IN ({marks}) ORDER BY at_ms, id LIMIT 1"
    )
    row = connection.execute(statement, [query, at_ms, *_LIFE]).fetchone()
    return None if row is None else str(row[0])


def _finding(event: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns why the query failed, if this is a failure."""
    detail = event["detail"]
    return detail.get("finding") or detail.get("error") if event["kind"] in ("failed", "ended") else None


def _repeats(finding: Mapping[str, Any], before: Sequence[Mapping[str, Any]]) -> bool:
    """Returns whether an end has the finding of the failure `before`: the query was stopped before its restart."""
    return any(event["kind"] == "failed" and _finding(event) == finding for event in before)


def _batch_of(finding: Mapping[str, Any]) -> int | None:
    number = (finding.get("failure") or {}).get("batch")
    if number is not None:
        return int(number)
    found = _BATCH.search(str(finding.get("message") or ""))
    return int(found.group(1)) if found else None


def alerts_after(connection: sqlite3.Connection, number: int) -> list[tuple[int, int, dict[str, Any]]]:
    """Returns the alerts after the one with `number`: their numbers, the numbers of their queries, and details."""
    statement = "SELECT id, query, detail FROM events WHERE kind = 'alert' AND id > ? ORDER BY id"
    return [(row[0], row[1], json.loads(row[2])) for row in connection.execute(statement, [number])]
