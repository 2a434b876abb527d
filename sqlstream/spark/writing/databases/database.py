"""What a writer needs from a database: connections, staging tables, and the columns of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from pyspark.sql import DataFrame

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.statements import TableLayout


class DatabaseError(Exception):
    """The database reports an error; the message is without secrets. `state` is its SQLSTATE, in MariaDB and MySQL
    with their error code, such as `42000, error 1049`. Empty without one.
    """

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True)
class FoundColumn:
    """A column of an existing table: its name, and its type in lower case as the database names it.

    `digits` are the decimal digits before and after the point, None without a limit or if the type is not decimal.
    `characters` are the most characters of a text, None without a limit that the type names.
    """

    name: str
    type: str
    digits: tuple[int, int] | None = None
    characters: int | None = None
    is_numbered: bool = False
    """Whether the database numbers new rows."""


@dataclass(frozen=True)
class FoundTable:
    """An existing table: its columns, and the columns of its primary key and of each unique index by its name."""

    columns: tuple[FoundColumn, ...]
    unique: Mapping[str, frozenset[str]]


class Connection(Protocol):
    """A connection to a database. Each statement outside of `begin` and `commit` is its own transaction.

    All methods raise DatabaseError.
    """

    def begin(self) -> None:
        """Begins a transaction."""

    def run(self, statement: str) -> None:
        """Runs a statement without result."""

    def first(self, query: str) -> Sequence[object] | None:
        """Returns the first row of a query, None without rows."""

    def all(self, query: str) -> Sequence[Sequence[object]]:
        """Returns all rows of a query."""

    def commit(self) -> None:
        """Ends the transaction."""

    def rollback(self) -> None:
        """Ends a transaction without its changes, if one has begun."""

    def find_table(self, table: str) -> FoundTable | None:
        """Returns a table as it exists, None if it does not."""

    def stage(self, rows: DataFrame, layout: TableLayout, staging: str) -> None:
        """Writes `rows` to a new staging table. Raises: Spark's errors."""

    def drop_staging(self, staging: str) -> None:
        """Removes the staging table, if it exists."""

    def close(self) -> None:
        """Closes the connection. A transaction that has not ended changes nothing."""


class Database(Protocol):
    """A table of a database."""

    @property
    def dialect(self) -> Dialect:
        """The dialect of the database."""

    @property
    def table(self) -> str:
        """The table, quoted, with its schema if it has one."""

    @property
    def schema(self) -> str:
        """The prefix for other tables in the schema of the table, such as `"sales".`, or empty."""

    @property
    def adds_columns(self) -> bool:
        """Whether sqlstream may add columns to the table."""

    def connect(self) -> Connection:
        """Opens a connection, and creates a file that does not exist. Raises: DatabaseError."""

    def connect_existing(self) -> Connection | None:
        """Opens a connection and creates nothing: None for a file that does not exist. Raises: DatabaseError."""
