"""What a writer needs from a database: connections, staging tables, the columns of its tables, and the batches that
other queries have applied to a table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding
from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.jdbc_options import last_part
from sqlstream.project.databases.statements import OUTPUT_COLUMN, BatchRecord, TableLayout
from sqlstream.state.refusals import table_in_use

if TYPE_CHECKING:  # a plan without Spark reads a SQLite file, too
    from pyspark.sql import DataFrame


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


def table_name(table: str) -> str:
    """Returns the name of a table without its schema, in lower case: PostgreSQL stores names without quotes so."""
    part = last_part(table)
    return (part[1:-1].replace(2 * part[0], part[0]) if part[0] in '"`' else part).lower()


def used_by_another(database: Database, model: CompiledModel, plain: str, query_id: str = "") -> Finding | None:
    """Returns the refusal of a new checkpoint of `model` that would write its rows again to the table of `database`:
    the table has rows, and other queries than `query_id` have applied batches to it. `plain` is the name that readers
    use. None in complete mode, which replaces all rows.

    Raises: DatabaseError.
    """
    connection = None if model.config.output_mode == "complete" else database.connect_existing()
    if connection is None:
        return None
    record = BatchRecord(database.dialect, query_id, database.schema, table_name(plain))
    with closing(connection):
        records = connection.find_table(record.table)
        if records is None or connection.find_table(database.table) is None:
            return None
        # an empty table can take the rows again
        if connection.first(f"SELECT 1 FROM {database.table} LIMIT 1") is None:
            return None
        found = connection.all(record.find_others(_names(model), has_outputs=has_output_column(records)))
    if not found:
        return None
    ids, (_, writer, last) = [str(row[0]) for row in found], found[0]
    return table_in_use(model.name, database.table, record, ids, str(writer), int(str(last)), model.file.location)


def other_models(database: Database, model: CompiledModel, plain: str) -> list[str]:
    """Returns the models whose queries have written to the table that readers find at the name `plain`, without
    `model`, whose versions have their own tables. Raises: DatabaseError.
    """
    record = BatchRecord(database.dialect, "", database.schema, table_name(plain))
    connection, names = database.connect_existing(), _names(model)
    if connection is None:
        return []
    with closing(connection):
        records = connection.find_table(record.table)
        if not has_output_column(records):
            return []
        writers = connection.all(record.find_others(names, has_outputs=True))
    return sorted({str(row[1]) for row in writers} - set(names))


def _names(model: CompiledModel) -> list[str]:
    """Returns the names under which the queries of a model record their batches."""
    return sorted({model.name, model.query_id})


def has_output_column(records: FoundTable | None) -> bool:
    """Returns whether the table of records has the output of each query, which early ones do not have."""
    return records is not None and any(column.name.lower() == OUTPUT_COLUMN for column in records.columns)
