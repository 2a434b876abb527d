"""Where alerts are stored: `logs/alerts.sqlite` has the open alerts of a project, and the messages that are not yet
delivered. Several runs of the project can use it at once. Each message belongs to one run; when that has ended, the
next run of the same target takes the message over.

This file of a submitted run ends with its driver. So beside its journal in the storage of the target, such a run has
one file with the queries that it answers for and their open alerts. A later run replaces what an earlier one says about
its queries, and removes a file whose queries are all its own.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from sqlstream.app.alerts.evaluation import OpenAlert
from sqlstream.app.alerts.payloads import AlertMessage
from sqlstream.history.database import FileKind, open_file, open_in_memory, transaction
from sqlstream.spark.storage.processes import machine_id, process_start
from sqlstream.state.runs.events import AlertChanged

ALERTS_FILE = "alerts.sqlite"

MAX_PENDING = 1_000
"""The most messages to keep for a channel; beyond it the oldest are dropped."""

FOREIGN_SECONDS = 900.0
"""How long messages of a run on another machine, or in another container, must be untouched before they are taken over.
A run touches its own every five minutes.
"""

_FIRST_IN_MEMORY = 1 << 40

KEEP_SECONDS = 7 * 86_400.0
"""How old messages can be when a run takes them over."""

_TABLES = (
    "CREATE TABLE open (target TEXT, model TEXT, alert TEXT, detail TEXT NOT NULL, PRIMARY KEY (target, model, alert))",
    """CREATE TABLE outbox (number INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, channel TEXT NOT NULL,
    message TEXT NOT NULL, touched REAL NOT NULL, owner TEXT)""",
    "CREATE INDEX outbox_of_channel ON outbox (target, channel, number)",
)
_FILE = FileKind(
    "alerts",
    application_id=0,  # as in the first release with alerts
    version=1,
    tables=_TABLES,
    first_table="outbox",
    is_derived=False,
    lost="undelivered alerts in it are not sent",
)


@dataclass(frozen=True)
class Pending:
    """A message that is not delivered yet, and its number in the file."""

    number: int
    message: AlertMessage


class AlertStore:
    """The alerts of `target` in the folder `logs` of a project, with what ended runs have left. Threads can share it.

    If the file cannot be used, alerts are kept in memory, and `problem` says why. `set_aside` is a sentence about an
    unusable file that a new one has replaced.
    """

    def __init__(self, logs: Path, target: str, max_pending: int = MAX_PENDING) -> None:
        self._target, self._max_pending = target, max_pending
        self._owner = f"{os.getpid()} {process_start(os.getpid())}"
        self._lock = threading.Lock()
        self.problem: str | None = None
        self.set_aside: str | None = None
        self.dropped: dict[str, int] = {}
        try:
            logs.mkdir(parents=True, exist_ok=True)
            opened, self.set_aside = open_file(logs / ALERTS_FILE, _FILE)
            self._connection: sqlite3.Connection | None = opened
            self.take_over()
        except (OSError, sqlite3.Error) as error:
            self.problem = str(error)
            self._connection = open_in_memory(_FILE)

    def open_alerts(self) -> list[OpenAlert]:
        """Returns the alerts of the target that are not resolved."""
        with self._transaction() as connection:
            statement = "SELECT model, alert, detail FROM open WHERE target = ?"
            rows = connection.execute(statement, [self._target]).fetchall()
        found = []
        for model, alert, detail in rows:
            with suppress(KeyError, TypeError, ValueError):  # of another version
                found.append(OpenAlert.from_json(model, alert, json.loads(detail)))
        return found

    def adopt(self, alerts: Iterable[OpenAlert]) -> None:
        """Stores open alerts of earlier runs that have another storage, unless they are there already."""
        with self._transaction() as connection:
            for alert in alerts:
                row = [self._target, alert.model, str(alert.kind), json.dumps(alert.as_json())]
                connection.execute("INSERT OR IGNORE INTO open VALUES (?, ?, ?, ?)", row)

    def take_over(self) -> None:
        """Makes this process the owner of all messages of the target whose runs have ended; drops very old ones.
        Touches its own, so that no other run takes them.
        """
        with self._transaction() as connection:
            statement = "SELECT owner, max(touched) FROM outbox WHERE target = ? GROUP BY owner"
            for owner, touched in connection.execute(statement, [self._target]).fetchall():
                if owner is None or _has_ended(owner, touched):
                    statement = "UPDATE outbox SET owner = ? WHERE target = ? AND owner IS ?"  # IS also finds null
                    connection.execute(statement, [self._owner, self._target, owner])
            statement = "DELETE FROM outbox WHERE target = ? AND owner = ? AND touched < ?"
            connection.execute(statement, [self._target, self._owner, time.time() - KEEP_SECONDS])
            # last, because the deletion goes by the times of the ended runs
            connection.execute("UPDATE outbox SET touched = ? WHERE owner = ?", [time.time(), self._owner])

    def add(self, change: AlertChanged, alert: OpenAlert | None, messages: Sequence[tuple[str, AlertMessage]]) -> None:
        """Stores a change in one transaction: the alert (None if it is resolved), and messages with their channels."""
        with self._transaction() as connection:
            key = [self._target, change.model, change.alert]
            if alert is None:
                connection.execute("DELETE FROM open WHERE target = ? AND model = ? AND alert = ?", key)
            else:
                connection.execute(
                    "INSERT OR REPLACE INTO open VALUES (?, ?, ?, ?)", [*key, json.dumps(alert.as_json())]
                )
            for channel, message in messages:
                statement = "INSERT INTO outbox (target, channel, message, touched, owner) VALUES (?, ?, ?, ?, ?)"
                text = json.dumps(message.as_json())
                connection.execute(statement, [self._target, channel, text, time.time(), self._owner])
                self._drop_oldest(connection, channel)

    def _drop_oldest(self, connection: sqlite3.Connection, channel: str) -> None:
        statement = (
            "DELETE FROM outbox WHERE number IN (SELECT number FROM outbox WHERE target = ? AND channel = ? "
            # SQLite has no OFFSET without a LIMIT; -1 is none
            "AND owner = ? ORDER BY number DESC LIMIT -1 OFFSET ?)"
        )
        gone = connection.execute(statement, [self._target, channel, self._owner, self._max_pending]).rowcount
        if gone:
            self.dropped[channel] = self.dropped.get(channel, 0) + gone

    def next(self, channel: str) -> Pending | None:
        """Returns the oldest message of this run for a channel, and notes that it is about to be sent."""
        with self._transaction() as connection:
            while (row := self._first(connection, channel)) is not None:
                connection.execute("UPDATE outbox SET touched = ? WHERE number = ?", [time.time(), row[0]])
                try:
                    return Pending(row[0], AlertMessage.from_json(json.loads(row[1])))
                except (KeyError, ValueError):  # of another version
                    connection.execute("DELETE FROM outbox WHERE number = ?", [row[0]])
        return None

    def _first(self, connection: sqlite3.Connection, channel: str) -> tuple[int, str] | None:
        statement = "SELECT number, message FROM outbox WHERE target = ? AND channel = ? AND owner = ? ORDER BY number"
        row = connection.execute(f"{statement} LIMIT 1", [self._target, channel, self._owner]).fetchone()
        return None if row is None else (int(row[0]), str(row[1]))

    def remove(self, number: int) -> None:
        """Removes a message that was delivered or refused."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE number = ?", [number])

    def count(self, channel: str) -> int:
        """Returns the number of messages of this run for a channel that are not delivered yet."""
        with self._transaction() as connection:
            statement = "SELECT count(*) FROM outbox WHERE target = ? AND channel = ? AND owner = ?"
            return int(connection.execute(statement, [self._target, channel, self._owner]).fetchone()[0])

    def use_memory(self, problem: str) -> None:
        """Continues without the file, because of this problem. Messages in it belong to the next run. Numbers of new
        messages differ from theirs, because one of them may be on its way.
        """
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self.problem = problem
            self._connection = open_in_memory(_FILE)
            self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('outbox', ?)", [_FIRST_IN_MEMORY])

    def close(self) -> None:
        """Leaves what is not delivered to the next run."""
        with suppress(sqlite3.Error), self._transaction() as connection:
            connection.execute("UPDATE outbox SET owner = NULL WHERE owner = ?", [self._owner])
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Raises: sqlite3.Error, also after `close`."""
        with self._lock:
            if self._connection is None:
                raise sqlite3.ProgrammingError("the file of the alerts is closed")
            with transaction(self._connection):
                yield self._connection


def _has_ended(owner: str, touched: float) -> bool:
    """Returns whether the run that owns a message has ended, as far as this machine knows."""
    pid, _, start = owner.partition(" ")
    if start.startswith(machine_id()):
        return process_start(int(pid)) != start
    return time.time() - touched > FOREIGN_SECONDS


@dataclass(frozen=True)
class EarlierAlerts:
    """The open alerts of earlier runs, and the queries of each of their files, by the names of the files."""

    alerts: tuple[OpenAlert, ...] = ()
    queries: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def replaced_by(self, queries: Collection[str]) -> Sequence[str]:
        """Returns the files that a run of `queries` replaces."""
        return [name for name, known in self.queries.items() if known <= set(queries)]


def alerts_text(queries: Iterable[str], alerts: Iterable[OpenAlert]) -> str:
    """Returns the file of a run of `queries` with these open alerts."""
    found = [{"model": each.model, "alert": str(each.kind), **each.as_json()} for each in alerts]
    return f"{json.dumps({'queries': sorted(queries), 'open': found})}\n"


def read_earlier(files: Iterable[tuple[str, str]]) -> EarlierAlerts:
    """Returns what `files` say, pairs of a name and a text, those of the newest run last. Skips files that a killed run
    has not written completely, or that another version of sqlstream has written.
    """
    alerts: dict[str, list[OpenAlert]] = {}
    queries: dict[str, frozenset[str]] = {}
    for name, text in files:
        try:
            found = json.loads(text)
            known = frozenset(map(str, found["queries"]))
            read = [OpenAlert.from_json(each["model"], each["alert"], each) for each in found["open"]]
        except (KeyError, TypeError, ValueError):
            continue
        queries[name] = known
        alerts |= {model: [alert for alert in read if alert.model == model] for model in sorted(known)}
    return EarlierAlerts(tuple(alert for found in alerts.values() for alert in found), queries)
