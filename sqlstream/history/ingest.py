"""Writes new lines of the journal into the history, with their rollups. Each line counts once, however many processes
do this.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlstream.history.database import transaction
from sqlstream.history.lines import BatchRow, EventRow, JournalPart, JournalReader, LagRow, RunLines, read_lines
from sqlstream.history.schema import BATCH_COLUMNS, BATCHES, MAXIMA, ROLLUP_SIZES, SUMS

_NAMES = ", ".join(BATCH_COLUMNS)
_INSERT_BATCH = f"INSERT OR IGNORE INTO temp.new ({_NAMES}) VALUES ({', '.join('?' * len(BATCH_COLUMNS))})"
_IS_KNOWN = " AND ".join(f"known.{name} = new.{name}" for name in ("query", "at_ms", "run", "batch_id"))
_ADD_UP = ", ".join(
    [f"{name} = coalesce({name} + excluded.{name}, {name}, excluded.{name})" for name in (*SUMS, "restarts")]
    + [f"{name} = max(coalesce({name}, excluded.{name}), coalesce(excluded.{name}, {name}))" for name in MAXIMA]
)
_ROLL_UP = (
    f"INSERT INTO rollups (query, size, at, {', '.join({**SUMS, **MAXIMA})}) "
    f"SELECT query, :size, at_ms / 1000 / :size * :size, {', '.join({**SUMS, **MAXIMA}.values())} FROM temp.new "
    f"WHERE true GROUP BY 1, 3 ON CONFLICT (query, size, at) DO UPDATE SET {_ADD_UP}"
)
_RESTART = (
    "INSERT INTO rollups (query, size, at, batches, restarts) VALUES (:query, :size, :at_ms / 1000 / :size * :size, "
    f"0, 1) ON CONFLICT (query, size, at) DO UPDATE SET {_ADD_UP}"
)

_LATEST = (
    "SELECT at_ms, run, batch_id FROM batches WHERE query = :query AND at_ms <= :at_ms ORDER BY at_ms DESC LIMIT 100"
)
_BATCH_OF_LAG = f"SELECT at_ms, batch_id FROM ({_LATEST}) WHERE run = :run AND batch_id <= :batch_id LIMIT 1"
"""The batch after which a lag was read, or the one before it: a checkpoint has a batch before the journal does."""

NewRun = Callable[[str], str | None]
"""Returns the target of a run by the id of its invocation, where the journal no longer has the start of the run."""


def target_unknown(invocation: str) -> None:
    """Returns that the target of a run is unknown."""
    del invocation


@dataclass
class Ingested:
    """What one call of `ingest` has written: lines, and batches."""

    lines: int = 0
    batches: int = 0


def ingest(connection: sqlite3.Connection, reader: JournalReader, target_of: NewRun = target_unknown) -> Ingested:
    """Writes the lines that no process has written yet, in transactions of about a thousand lines, each together with
    the offset in the journal. Raises: sqlite3.Error; the next call then goes on where this one failed.
    """
    done = Ingested()
    try:
        while not _ingest_parts(connection, reader, target_of, done):
            reader.forget()  # another process has written a part
    except BaseException:
        reader.forget()
        raise
    return done


def _ingest_parts(connection: sqlite3.Connection, reader: JournalReader, target_of: NewRun, done: Ingested) -> bool:
    """Returns whether everything was written; False if another process wrote a part at the same time."""
    offsets = dict(connection.execute("SELECT head, offset FROM journal"))
    for part in reader.parts(offsets):
        runs = read_lines(part.lines)
        with transaction(connection):
            if not _advance(connection, part):
                return False
            done.batches += write_runs(connection, runs, target_of)
            done.lines += len(part.lines)
    return True


def _advance(connection: sqlite3.Connection, part: JournalPart) -> bool:
    """Sets the offset of a journal file to the end of `part`; returns False if it is not at its start any more."""
    row = connection.execute("SELECT offset FROM journal WHERE head = ?", [part.head]).fetchone()
    if (row[0] if row else 0) != part.start:
        return False
    statement = (
        "INSERT INTO journal VALUES (?, ?, ?) ON CONFLICT (head) DO UPDATE SET offset = excluded.offset, "
        "read_ms = excluded.read_ms"
    )
    connection.execute(statement, [part.head, part.end, time.time_ns() // 1_000_000])
    return True


def fact(connection: sqlite3.Connection, name: str) -> int:
    """Returns a number that the history keeps, 0 if there is none."""
    row = connection.execute("SELECT value FROM facts WHERE name = ?", [name]).fetchone()
    return int(row[0]) if row else 0


def set_fact(connection: sqlite3.Connection, name: str, value: int) -> None:
    """Keeps a number, within the caller's transaction."""
    connection.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", [name, value])


def write_runs(connection: sqlite3.Connection, runs: Mapping[str, RunLines], target_of: NewRun = target_unknown) -> int:
    """Writes what lines say about runs, within the caller's transaction; returns the number of batches."""
    return _Writer(connection, target_of).write(runs)


@dataclass
class _Writer:
    """Writes one part of the journal within a transaction."""

    connection: sqlite3.Connection
    target_of: NewRun
    revision: int = 0

    def write(self, runs: Mapping[str, RunLines]) -> int:
        """Returns the number of batches."""
        self.revision = fact(self.connection, "revision") + 1
        self.connection.execute(f"CREATE TEMP TABLE IF NOT EXISTS {BATCHES.replace('batches', 'new', 1)}")
        written = [(run, *self._write_run(run)) for run in runs.values()]
        count = self._write_batches()
        for run, identity, queries in written:
            for lag in run.lags:
                self._write_lag(queries[lag.model], identity, lag)
        set_fact(self.connection, "revision", self.revision)
        set_fact(self.connection, "batches", fact(self.connection, "batches") + count)
        return count

    def _write_batches(self) -> int:
        """Moves the new batches to their table, and adds them to the rollups; returns their number."""
        # a batch that is there already must not count again in the rollups
        self.connection.execute(f"DELETE FROM temp.new WHERE EXISTS (SELECT 1 FROM batches AS known WHERE {_IS_KNOWN})")
        statement = f"INSERT INTO batches ({_NAMES}) SELECT {_NAMES} FROM temp.new"
        count = self.connection.execute(statement).rowcount
        for size in ROLLUP_SIZES:
            self.connection.execute(_ROLL_UP, {"size": size})
        self.connection.execute("DELETE FROM temp.new")
        return count

    def _write_lag(self, query: int, run: int, lag: LagRow) -> None:
        """Adds a lag to the batch after which it was read, and to the rollups of that batch."""
        key = {"query": query, "run": run, "batch_id": lag.batch_id, "at_ms": lag.at_ms}
        found = self.connection.execute(_BATCH_OF_LAG, key).fetchone()
        if found is None or not lag.values:
            return
        key["at_ms"], key["batch_id"] = found
        assigned = ", ".join(f"{name} = :{name}" for name in lag.values)
        condition = "query = :query AND at_ms = :at_ms AND run = :run AND batch_id = :batch_id"
        self.connection.execute(f"UPDATE batches SET {assigned} WHERE {condition}", {**key, **lag.values})
        highest = ", ".join(f"{name} = max(coalesce({name}, 0), :{name})" for name in lag.values)
        for size in ROLLUP_SIZES:
            at = found[0] // 1000 // size * size
            statement = f"UPDATE rollups SET {highest} WHERE query = :query AND size = :size AND at = :at"
            self.connection.execute(statement, {**key, **lag.values, "size": size, "at": at})

    def _write_run(self, run: RunLines) -> tuple[int, dict[str, int]]:
        """Writes a run without its lags; returns its number, and those of its queries."""
        identity, target = self._run(run)
        queries = {model: self._query(target, model) for model in _models(run)}
        for model, (heard_at, entry) in run.entries.items():
            self._entry(queries[model], identity, heard_at, entry)
        rows = [(queries[row.model], row.at_ms, identity, row.batch_id, *row.values) for row in run.batches]
        self.connection.executemany(_INSERT_BATCH, rows)
        events = [(queries[event.model], identity, event.at_ms, event.kind, event.detail) for event in run.events]
        statement = "INSERT INTO events (query, run, at_ms, kind, detail) VALUES (?, ?, ?, ?, ?)"
        self.connection.executemany(statement, events)
        restarts = [event for event in run.events if event.kind == "restarted"]
        for size in ROLLUP_SIZES:
            values = [{"query": queries[each.model], "size": size, "at_ms": each.at_ms} for each in restarts]
            self.connection.executemany(_RESTART, values)
        return identity, queries

    def _run(self, run: RunLines) -> tuple[int, str]:
        """Returns the number and the target of a run, after updating its row."""
        found = self.connection.execute("SELECT id, target FROM runs WHERE invocation = ?", [run.invocation]).fetchone()
        if found is None:
            target = run.facts.get("target") or self.target_of(run.invocation)
            statement = "INSERT INTO runs (invocation, target, began_at, heard_at, revision) VALUES (?, ?, ?, ?, 0)"
            values = [run.invocation, target, run.began_at, run.heard_at]
            found = self.connection.execute(statement, values).lastrowid, target
        number, target = found
        facts = {**run.facts, "heard_at": run.heard_at, "revision": self.revision}
        assigned = ", ".join(f"{name} = ?" for name in facts)
        self.connection.execute(f"UPDATE runs SET {assigned} WHERE id = ?", [*facts.values(), number])
        return int(number), str(run.facts.get("target") or target or "")

    def _query(self, target: str, model: str) -> int:
        key = [target, model]
        found = self.connection.execute("SELECT id FROM queries WHERE target = ? AND model = ?", key).fetchone()
        if found is None:
            statement = "INSERT INTO queries (target, model, revision) VALUES (?, ?, ?)"
            found = (self.connection.execute(statement, [*key, self.revision]).lastrowid,)
        return int(found[0])

    def _entry(self, query: int, run: int, heard_at: str, entry: dict[str, Any]) -> None:
        """Sets the newest entry of a query. The progress stays that of the run's last batch."""
        before = self.connection.execute("SELECT run, heard_at, entry FROM queries WHERE id = ?", [query]).fetchone()
        if before[1] > heard_at:
            return
        if entry.get("progress") is None and before[0] == run:
            entry["progress"] = json.loads(before[2]).get("progress")
        self.connection.execute(
            "UPDATE queries SET run = ?, heard_at = ?, unique_id = ?, entry = ?, revision = ? WHERE id = ?",
            [run, heard_at, entry.get("unique_id"), json.dumps(entry), self.revision, query],
        )


def _models(run: RunLines) -> dict[str, None]:
    rows: tuple[BatchRow | EventRow | LagRow, ...] = (*run.batches, *run.events, *run.lags)
    return dict.fromkeys((*run.entries, *(row.model for row in rows)))
