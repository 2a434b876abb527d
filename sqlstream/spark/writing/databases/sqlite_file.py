"""SQLite: a table in one file on the machine that runs sqlstream."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.databases.statements import TableLayout, create_staging
from sqlstream.spark.writing.databases.database import Connection, DatabaseError, FoundColumn, FoundTable
from sqlstream.state.layout import output_table
from sqlstream.state.query_versions import split_sqlite_path

if TYPE_CHECKING:  # a plan without Spark reads the file, too
    from pyspark.sql import DataFrame

WAIT_SECONDS = 60.0
"""How long to wait for another process that writes to the file."""


@dataclass(frozen=True)
class SqliteFile:
    """The table `table` (quoted) of the file at `path`."""

    path: Path
    table: str
    dialect: Dialect = SQLITE
    schema: str = ""
    adds_columns: bool = True

    def connect(self) -> Connection:
        """Opens the file, and creates it if it does not exist."""
        with _errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode = WAL")  # readers see the last complete batch, and never wait
                connection.execute("PRAGMA synchronous = FULL")  # as Spark's log, a commit survives a power failure
            except BaseException:
                connection.close()
                raise
            return SqliteConnection(connection, self.path)

    def connect_existing(self) -> Connection | None:
        """Opens the file, None if it does not exist."""
        if not self.path.exists():
            return None
        with _errors(self.path):
            uri = f"{self.path.absolute().as_uri()}?mode=rw"
            connection = sqlite3.connect(uri, timeout=WAIT_SECONDS, isolation_level=None, uri=True)
            return SqliteConnection(connection, self.path)


def sqlite_file(path: str, query_id: str) -> SqliteFile:
    """Returns the table of a version that writes to the local `path`."""
    path, version = split_sqlite_path(path)
    table = SQLITE.quote(query_id)
    if version is None:
        return SqliteFile(Path(path), table)
    earlier = Path(f"{path}.v{version}")  # before versions shared a file
    return (
        SqliteFile(earlier, table)
        if earlier.exists()
        else SqliteFile(Path(path), output_table(table, version, is_published=True))
    )


@dataclass(frozen=True)
class SqliteConnection:
    """A connection to the file at `path`."""

    connection: sqlite3.Connection
    path: Path

    def begin(self, kind: str = "IMMEDIATE") -> None:
        """Begins a transaction, as the only one that writes."""
        self.run(f"BEGIN {kind}")

    def run(self, statement: str) -> None:
        """Runs a statement."""
        with _errors(self.path):
            self.connection.execute(statement)

    def run_many(self, statement: str, rows: Iterator[tuple[object, ...]]) -> None:
        """Runs a statement for each of `rows`."""
        with _errors(self.path):
            self.connection.executemany(statement, rows)

    def all(self, query: str) -> list[Sequence[object]]:
        """Returns all rows of a query."""
        with _errors(self.path):
            return self.connection.execute(query).fetchall()

    def first(self, query: str) -> Sequence[object] | None:
        """Returns the first row of a query, None without rows."""
        return next(iter(self.all(query)), None)

    def commit(self) -> None:
        """Ends the transaction."""
        self.run("COMMIT")

    def rollback(self) -> None:
        """Ends a transaction without its changes, if one has begun."""
        if self.connection.in_transaction:
            self.run("ROLLBACK")

    def find_table(self, table: str) -> FoundTable | None:
        """Returns a table as it exists, None if it does not."""
        columns = self.all(f"PRAGMA table_info({table})")
        unique = {"": frozenset(str(name).lower() for _, name, _, _, _, rank in columns if rank)}
        for _, index, is_unique, *_ in self.all(f"PRAGMA index_list({table})"):
            parts = self.all(f"PRAGMA index_info({SQLITE.quote(str(index))})") if is_unique else []
            unique[str(index)] = frozenset(str(name).lower() for _, _, name in parts)
        found = tuple(FoundColumn(str(name), str(kind).lower()) for _, name, kind, *_ in columns)
        return FoundTable(found, unique) if found else None

    def stage(self, rows: DataFrame, layout: TableLayout, staging: str) -> None:
        """Writes `rows` to a temporary table, one partition after the other."""
        self.run(create_staging(layout, staging))
        marks = ", ".join("?" * len(rows.columns))
        self.begin("DEFERRED")  # a temporary table does not lock the file
        self.run_many(f"INSERT INTO {staging} VALUES ({marks})", rows.toLocalIterator(prefetchPartitions=True))
        self.commit()

    def drop_staging(self, staging: str) -> None:
        """Does nothing: a temporary table ends with its connection."""

    def close(self) -> None:
        """Closes the connection, and rolls back a transaction that has not ended."""
        self.connection.close()


@contextmanager
def _errors(path: Path) -> Iterator[None]:
    """Raises: DatabaseError for an error of SQLite or of the file system."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise DatabaseError(f"SQLite reports for {path}: {error}") from error
