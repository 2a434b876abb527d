"""The history of one project: history.sqlite with one writer and one reader, for any number of threads, and the bound
of its size.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from sqlstream.history.database import (
    FileKind,
    UnusableFileError,
    is_damage,
    open_file,
    open_in_memory,
    open_to_read,
    open_usable,
    set_aside,
    transaction,
)
from sqlstream.history.ingest import Ingested, NewRun, fact, ingest, set_fact, target_unknown
from sqlstream.history.lines import JournalReader
from sqlstream.history.schema import APPLICATION_ID, COLUMNS, HOURS_2, MINUTES_5, SCHEMA_VERSION, TABLES

BOUND_SECONDS = 600.0
"""How often the bound is applied."""

HISTORY = "history.sqlite"
"""The name of the file, beside events.jsonl."""

HISTORY_FILE = FileKind(
    "history",
    APPLICATION_ID,
    SCHEMA_VERSION,
    TABLES,
    first_table="runs",
    is_derived=True,
    lost="the history starts again from the journal",
    columns=COLUMNS,
)

DAY_MS = 86_400_000
KEPT_AFTER_CUT = 0.95
"""The part of the maximum that stays when there are too many batches, so that a cut is rare."""


class History:
    """The history in the folder `logs`, filled from the journal files `journal`, the oldest first.

    If the folder cannot be written, the history is in memory. `problems` are sentences for the user: an unusable file
    that was set aside, or why the history is not stored.
    """

    def __init__(
        self, logs: Path, journal: Sequence[Path], bound: Bound | None = None, target_of: NewRun = target_unknown
    ) -> None:
        self.path = logs / HISTORY
        self.problems: list[str] = []
        self._journal = JournalReader(journal)
        self._bound = bound or Bound()
        self._target_of = target_of
        self._writing, self._reading = threading.Lock(), threading.Lock()
        self._bounded_at = float("-inf")  # the monotonic clock may begin at 0
        self._open()

    def _open(self) -> None:
        self._journal.forget()
        try:
            self._writer, problem = open_file(self.path, HISTORY_FILE)
            self._inode: int | None = self.path.stat().st_ino
            self._reader = open_to_read(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            self._writer = self._reader = open_in_memory(HISTORY_FILE)
            # a database in memory belongs to one connection, so its readers take the lock of the writer
            self._inode, self._reading = None, self._writing
            problem = f"{self.path.name} cannot be written ({error}); the history of this process is not stored"
        if problem is not None:
            self.problems.append(problem)

    @property
    def is_stored(self) -> bool:
        """Whether the history is in its file, not only in memory."""
        return self._inode is not None

    def ingest(self) -> Ingested:
        """Writes what is new in the journal. Raises: sqlite3.Error if the file cannot be written now."""
        with self._writing:
            self._reopen_if_replaced()
            try:
                return self._ingest()
            except sqlite3.DatabaseError as error:
                if not is_damage(error) or not self.is_stored:
                    raise
                self._replace(error)
                return self._ingest()

    def _ingest(self) -> Ingested:
        done = ingest(self._writer, self._journal, self._target_of) if self._journal.has_news() else Ingested()
        if self._bounded_at + BOUND_SECONDS < time.monotonic():
            self._bounded_at = time.monotonic()
            apply_bound(self._writer, self._bound, time.time_ns() // 1_000_000)
        return done

    def _reopen_if_replaced(self) -> None:
        """Opens the file again if another process has set it aside, or somebody has removed it."""
        if not self.is_stored:
            return
        try:
            inode = self.path.stat().st_ino
        except OSError:
            inode = -1
        if inode != self._inode:
            with self._reading:
                self._close()
                self._open()

    def _replace(self, error: sqlite3.Error) -> None:
        with self._reading:
            self._close()
            with suppress(OSError):
                self.problems.append(set_aside(self.path, HISTORY_FILE, f"is damaged ({error})"))
            self._open()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yields a connection for short queries, which no other thread uses at the same time."""
        with self._reading:
            yield self._reader

    def close(self) -> None:
        """Closes the file."""
        with self._writing:
            self._close()

    def _close(self) -> None:
        for connection in (self._reader, self._writer):
            with suppress(sqlite3.Error):
                connection.close()


def read_history(logs: Path, journal: Sequence[Path], target_of: NewRun = target_unknown) -> sqlite3.Connection:
    """Returns the history in the folder `logs` with all lines of the journal. Creates and replaces no file: a history
    that does not exist, or that cannot be used or written now, is read from the journal into memory.
    """
    path, reader = logs / HISTORY, JournalReader(journal)
    if path.is_file():
        with suppress(OSError, sqlite3.Error, UnusableFileError):
            connection = open_usable(path, HISTORY_FILE)
            try:
                ingest(connection, reader, target_of)
            except BaseException:
                connection.close()
                raise
            return connection
    connection = open_in_memory(HISTORY_FILE)
    ingest(connection, reader, target_of)
    return connection


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
    span = HOURS_2 * 1000
    with transaction(connection):
        start = max(fact(connection, "raw_since_ms"), (now_ms - bound.batch_days * DAY_MS) // span * span)
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
