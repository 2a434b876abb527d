"""Databases behind a JDBC driver: executors write the staging table, and a connection of the driver in Spark's JVM
(java.sql, a public API) applies it. Over Connect, a connection of a driver in Python does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from sqlstream.project.databases.dialect import Dialect
from sqlstream.project.databases.jdbc_options import connection_properties, last_part, server_of, writer_options
from sqlstream.project.databases.logins import UnmappedOptionError, read_login
from sqlstream.project.databases.statements import TableLayout, create_staging
from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of, is_connect, is_jvm_gone, java_class
from sqlstream.spark.writing.databases.database import Connection, DatabaseError, FoundColumn, FoundTable
from sqlstream.spark.writing.databases.python_drivers import DriverConnection, DriverError, open_connection

_JAVA_CLASS = re.compile(r"^:?\s*(?:[\w.$]+(?:Exception|Error): )+")

_NO_TABLE = ("42P01", "42S02")
"""The SQLSTATEs of a table that does not exist, in PostgreSQL and in MySQL."""

_DECIMALS = ("numeric", "decimal")

_SIZED_TEXTS = ("varchar", "char", "bpchar")

_NO_LIMIT = 2**31 - 1
"""The size of a varchar without a limit in PostgreSQL."""


@dataclass(frozen=True)
class JdbcDatabase:
    """The table `table` of a database, as written in the option `dbtable`. `options` are those of the sink, with
    passwords. `redact` removes them from messages.
    """

    dialect: Dialect
    table: str
    session: SparkSession = field(repr=False)
    options: Mapping[str, str] = field(repr=False)
    redact: Callable[[str], str] = field(repr=False)
    adds_columns: bool = False

    @property
    def schema(self) -> str:
        """The schema of the table with a dot, empty without one."""
        return self.table.removesuffix(last_part(self.table))

    def with_timeouts(self) -> JdbcDatabase:
        """Returns the same table with connections that give up in seconds if the server is silent."""
        return replace(self, options={**self.dialect.timeouts, **self.options})

    def connect(self) -> Connection:
        with self.errors():
            connection = _ServerConnection(self, self._open())
            try:
                connection.run(self.dialect.session)
            except BaseException:
                connection.close()
                raise
        return connection

    def connect_existing(self) -> Connection:
        return self.connect()

    def _open(self) -> DriverConnection:
        if is_connect(self.session):
            try:
                return open_connection(self.dialect, read_login(self.dialect, self.options))
            except UnmappedOptionError as error:
                raise self._error(f"{error}; {error.fix}", "") from None
        return _JavaConnection(self._open_java())

    def _open_java(self) -> Any:
        """Returns a java.sql.Connection. java.sql.DriverManager would not find the driver, because only the class
        loader of Spark's jars has it. Over Connect: a driver in Python connects.
        """
        driver = self._option("driver") or self.dialect.driver
        loader = java_class(self.session, "java.lang.Thread").currentThread().getContextClassLoader()
        made = loader.loadClass(driver).getConstructors()[0].newInstance(None)
        properties = java_class(self.session, "java.util.Properties")()
        for name, value in connection_properties(self.dialect, self.options).items():
            properties.setProperty(name, value)
        connection = made.connect(self._option("url"), properties)
        if connection is None:
            raise self._error(f"{driver} does not accept the URL", "")
        return connection

    def _option(self, wanted: str) -> str:
        return next((value for name, value in self.options.items() if name.lower() == wanted), "")

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raises: DatabaseError for an error of the driver, with the name of the server and without passwords; an error
        of py4j if the JVM is gone.
        """
        try:
            yield
        except DriverError as error:
            raise self._error(str(error), error.state) from None
        except JVM_ERRORS as error:
            if is_jvm_gone(error):
                raise
            lines = causes_of(error)[0].message.splitlines()
            text = _JAVA_CLASS.sub("", " ".join(line.strip() for line in lines if line.strip()))
            raise self._error(text, _state(error)) from None  # the error of py4j may have the URL

    def _error(self, message: str, state: str) -> DatabaseError:
        text = f"{self.dialect.title} at {server_of(self._option('url'))} reports: {message}"
        return DatabaseError(self.redact(f"{text} [SQLSTATE {state}]" if state else text), state)


def _state(error: BaseException) -> str:
    """Returns the SQLSTATE of a java.sql.SQLException, with the error code of the database if it has one, such as
    `42000, error 1049`. Empty for another error.
    """
    with suppress(AttributeError, *JVM_ERRORS):
        found = error.java_exception  # type: ignore[attr-defined]
        state, code = found.getSQLState(), found.getErrorCode()
        return f"{state}, error {code}" if state and code else str(state or "")
    return ""


@dataclass(frozen=True)
class _ServerConnection:
    """A `Connection` through a driver. Values are text."""

    database: JdbcDatabase
    driver: DriverConnection

    def begin(self) -> None:
        with self.database.errors():
            self.driver.begin()

    def run(self, statement: str) -> None:
        with self.database.errors():
            self.driver.run(statement)

    def first(self, query: str) -> Sequence[str | None] | None:
        return next(iter(self.all(query)), None)

    def all(self, query: str) -> Sequence[Sequence[str | None]]:
        with self.database.errors():
            return self.driver.all(query)

    def commit(self) -> None:
        with self.database.errors():
            self.driver.commit()

    def rollback(self) -> None:
        with self.database.errors():
            self.driver.rollback()

    def close(self) -> None:
        self.driver.close()

    def find_table(self, table: str) -> FoundTable | None:
        try:
            with self.database.errors():
                columns = self.driver.columns(table)
        except DatabaseError as error:
            if error.state.startswith(_NO_TABLE):
                return None
            raise
        unique: dict[str, set[str]] = {}
        for index, column in self.all(self.database.dialect.unique_columns(table)):
            unique.setdefault(str(index), set()).add(str(column).lower())
        return FoundTable(columns, {name: frozenset(parts) for name, parts in unique.items()})

    def stage(self, rows: DataFrame, layout: TableLayout, staging: str) -> None:
        self.drop_staging(staging)  # of an attempt that failed
        self.run(create_staging(layout, staging))
        options = writer_options(self.database.dialect, self.database.options, staging)
        rows.write.format("jdbc").options(**options).mode("append").save()

    def drop_staging(self, staging: str) -> None:
        self.run(f"DROP TABLE IF EXISTS {staging}")


@dataclass(frozen=True)
class _JavaConnection:
    """A connection of a JDBC driver: `java` is a java.sql.Connection."""

    java: Any

    def begin(self) -> None:
        self.java.setAutoCommit(False)

    def run(self, statement: str) -> None:
        with self._statement() as java:
            java.execute(statement)

    def all(self, query: str) -> list[tuple[str | None, ...]]:
        with self._statement() as java:
            result, rows = java.executeQuery(query), []
            count = result.getMetaData().getColumnCount()
            while result.next():
                rows.append(tuple(result.getString(index + 1) for index in range(count)))
            return rows

    @contextmanager
    def _statement(self) -> Iterator[Any]:
        java = self.java.createStatement()
        try:
            yield java
        finally:
            java.close()

    def commit(self) -> None:
        self.java.commit()
        self.java.setAutoCommit(True)

    def rollback(self) -> None:
        if not self.java.getAutoCommit():
            self.java.rollback()
            self.java.setAutoCommit(True)

    def columns(self, table: str) -> tuple[FoundColumn, ...]:
        with self._statement() as java:
            found = java.executeQuery(f"SELECT * FROM {table} WHERE 1 = 0").getMetaData()
            return tuple(_found_column(found, index + 1) for index in range(found.getColumnCount()))

    def close(self) -> None:
        with suppress(*JVM_ERRORS):  # the connection may be broken, which rolls back too
            if not self.java.getAutoCommit():
                self.java.rollback()
        with suppress(*JVM_ERRORS):
            self.java.close()


def _found_column(found: Any, index: int) -> FoundColumn:
    """Returns a column that java.sql.ResultSetMetaData describes."""
    type_, precision, scale = found.getColumnTypeName(index).lower(), found.getPrecision(index), found.getScale(index)
    digits = (precision - scale, scale) if type_ in _DECIMALS and precision > 0 else None
    characters = precision if type_ in _SIZED_TEXTS and precision < _NO_LIMIT else None
    return FoundColumn(found.getColumnName(index), type_, digits, characters, found.isAutoIncrement(index))
