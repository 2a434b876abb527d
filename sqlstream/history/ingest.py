"""Writes new lines of the journal into the history, with their rollups. Each line counts once, however many processes
do this.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from sqlstream.history.lines import JournalPart, JournalReader, RunLines, read_lines
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

NewRun = Callable[[str], str | None]
"""Returns the target of a run by the id of its invocation, where the journal no longer has the start of the run."""


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


_INSERT_BATCH = (
    f"INSERT OR IGNORE INTO batches ({', '.join(BATCH_COLUMNS)}) VALUES ({', '.join(['?'] * len(BATCH_COLUMNS))})"
)


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


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commits what the body writes; writes nothing if it fails."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


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
    rollups: Rollups = field(default_factory=Rollups)
    revision: int = 0

    def write(self, runs: Mapping[str, RunLines]) -> int:
        """Returns the number of batches."""
        self.revision = fact(self.connection, "revision") + 1
        count = sum(self._write_run(run) for run in runs.values())
        self.rollups.write(self.connection)
        set_fact(self.connection, "revision", self.revision)
        set_fact(self.connection, "batches", fact(self.connection, "batches") + count)
        return count

    def _write_run(self, run: RunLines) -> int:
        identity, target = self._run(run)
        queries = {model: self._query(target, model) for model in _models(run)}
        for model, (heard_at, entry) in run.entries.items():
            self._entry(queries[model], identity, heard_at, entry)
        rows = [(queries[row.model], row.at_ms, identity, row.batch_id, *row.values) for row in run.batches]
        # a batch that is there already must not count again in the rollups
        written = [row for row in rows if self.connection.execute(_INSERT_BATCH, row).rowcount]
        self.rollups.add_batches(written)
        events = [(queries[event.model], identity, event.at_ms, event.kind, event.detail) for event in run.events]
        statement = "INSERT INTO events (query, run, at_ms, kind, detail) VALUES (?, ?, ?, ?, ?)"
        self.connection.executemany(statement, events)
        for event in run.events:
            if event.kind == "restarted":
                self.rollups.add_restart(queries[event.model], event.at_ms)
        return len(written)

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
    names = (*run.entries, *(row.model for row in run.batches), *(event.model for event in run.events))
    return dict.fromkeys(names)
