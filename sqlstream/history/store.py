"""The history of one project: one writer and one reader of history.sqlite, for any number of threads."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlstream.history.database import HISTORY, is_damage, open_database, open_in_memory, read_connection, set_aside
from sqlstream.history.ingest import Ingested, NewRun, ingest, target_unknown
from sqlstream.history.journal import JournalReader
from sqlstream.history.retention import Bound, apply_bound

BOUND_SECONDS = 600.0
"""How often the bound is applied."""


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
            self._writer, problem = open_database(self.path)
            self._inode: int | None = self.path.stat().st_ino
            self._reader = read_connection(self.path)
        except (OSError, sqlite3.OperationalError) as error:
            self._writer = self._reader = open_in_memory()
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
                aside = set_aside(self.path)
                what = f"{self.path.name} is damaged ({error}); it was renamed to {aside.name}, and the history starts "
                self.problems.append(what + "again from the journal")
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
