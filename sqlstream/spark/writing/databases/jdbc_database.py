"""Databases behind a JDBC driver: executors write the staging table, the driver's connection applies it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import DataFrame, SparkSession

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.jdbc_options import connection_properties, last_part, server_of, writer_options
from sqlstream.project.databases.statements import TableLayout, create_staging
from sqlstream.spark.jvm.jdbc import JdbcColumn, JdbcConnection, JdbcError, open_connection
from sqlstream.spark.writing.databases.database import Connection, DatabaseError, FoundColumn, FoundTable

_NO_TABLE = ("42P01", "42S02")
"""The SQLSTATEs of a table that does not exist, in PostgreSQL and in MySQL."""

_DECIMALS = ("numeric", "decimal")

_SIZED_TEXTS = ("varchar", "char", "bpchar")

_NO_LIMIT = 2**31 - 1
"""The size of a varchar without a limit in PostgreSQL."""

Redact = Callable[[str], str]


@dataclass(frozen=True)
class JdbcDatabase:
    """The table `table` of a database, as written in the option `dbtable`. `options` are those of the sink, with
    passwords. `redact` removes them from messages.
    """

    dialect: Dialect
    table: str
    session: SparkSession = field(repr=False)
    options: Mapping[str, str] = field(repr=False)
    redact: Redact = field(repr=False)
    adds_columns: bool = False

    @property
    def schema(self) -> str:
        """The schema of the table with a dot, empty without one."""
        return self.table.removesuffix(last_part(self.table))

    def with_timeouts(self) -> JdbcDatabase:
        """Returns the same table with connections that give up in seconds if the server is silent."""
        return replace(self, options={**self.dialect.timeouts, **self.options})

    def connect(self) -> Connection:
        """Opens a connection from the driver."""
        driver = next((value for name, value in self.options.items() if name.lower() == "driver"), self.dialect.driver)
        url = next(value for name, value in self.options.items() if name.lower() == "url")
        with self.errors():
            connection = open_connection(self.session, driver, url, connection_properties(self.dialect, self.options))
            try:
                connection.run(self.dialect.session)
            except BaseException:
                connection.close()
                raise
        return _JdbcSession(self, connection)

    def connect_existing(self) -> Connection:
        """Opens a connection."""
        return self.connect()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raises: DatabaseError for an error of the driver, with the name of the server and without passwords."""
        try:
            yield
        except JdbcError as error:
            url = next(value for name, value in self.options.items() if name.lower() == "url")
            state = f" [SQLSTATE {error.state}]" if error.state else ""
            text = f"{self.dialect.title} at {server_of(url)} reports: {error}{state}"
            raise DatabaseError(self.redact(text), error.state) from None


@dataclass(frozen=True)
class _JdbcSession:
    database: JdbcDatabase
    connection: JdbcConnection

    def begin(self) -> None:
        with self.database.errors():
            self.connection.begin()

    def run(self, statement: str) -> None:
        with self.database.errors():
            self.connection.run(statement)

    def first(self, query: str) -> tuple[str | None, ...] | None:
        return next(iter(self.all(query)), None)

    def all(self, query: str) -> list[tuple[str | None, ...]]:
        with self.database.errors():
            return self.connection.all(query)

    def commit(self) -> None:
        with self.database.errors():
            self.connection.commit()

    def rollback(self) -> None:
        with self.database.errors():
            self.connection.rollback()

    def close(self) -> None:
        self.connection.close()

    def find_table(self, table: str) -> FoundTable | None:
        with self.database.errors():
            try:
                columns = self.connection.columns(f"SELECT * FROM {table} WHERE 1 = 0")
            except JdbcError as error:
                if error.state.startswith(_NO_TABLE):
                    return None
                raise
            unique: dict[str, set[str]] = {}
            for index, column in self.connection.all(self.database.dialect.unique_columns(table)):
                unique.setdefault(str(index), set()).add(str(column).lower())
        return FoundTable(
            tuple(map(_found_column, columns)), {name: frozenset(parts) for name, parts in unique.items()}
        )

    def stage(self, rows: DataFrame, layout: TableLayout, staging: str) -> None:
        self.drop_staging(staging)  # of an attempt that failed
        self.run(create_staging(layout, staging))
        options = writer_options(self.database.dialect, self.database.options, staging)
        rows.write.format("jdbc").options(**options).mode("append").save()

    def drop_staging(self, staging: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {staging}")


def _found_column(column: JdbcColumn) -> FoundColumn:
    type_ = column.type.lower()
    has_limit = type_ in _DECIMALS and column.precision > 0
    digits = (column.precision - column.scale, column.scale) if has_limit else None
    characters = column.precision if type_ in _SIZED_TEXTS and column.precision < _NO_LIMIT else None
    return FoundColumn(column.name, type_, digits, characters, column.is_numbered)
