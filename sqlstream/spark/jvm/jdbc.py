"""Connections to databases from the driver, through the JDBC drivers in Spark's JVM (java.sql, a public API).

Over Connect: there is no JVM, so there are no connections.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.gateway import JVM_ERRORS, causes_of, is_jvm_gone, java_class

_JAVA_CLASS = re.compile(r"^:?\s*(?:[\w.$]+(?:Exception|Error): )+")


class JdbcError(Exception):
    """An error of a JDBC driver; the message is the driver's, without its classes and its stack trace. `state` is its
    SQLSTATE as in `_state`, empty without one.
    """

    def __init__(self, message: str, state: str = "") -> None:
        super().__init__(message)
        self.state = state


@dataclass(frozen=True)
class JdbcColumn:
    """A column as java.sql.ResultSetMetaData describes it; `is_numbered` is its isAutoIncrement."""

    name: str
    type: str
    precision: int
    scale: int
    is_numbered: bool


class JdbcConnection:
    """An open java.sql.Connection. All methods raise JdbcError, or an error of py4j if the JVM is gone."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def begin(self) -> None:
        """Begins a transaction."""
        with _errors():
            self._connection.setAutoCommit(False)

    def commit(self) -> None:
        """Ends the transaction."""
        with _errors():
            self._connection.commit()
            self._connection.setAutoCommit(True)

    def rollback(self) -> None:
        """Ends a transaction without its changes, if one has begun."""
        with _errors():
            if not self._connection.getAutoCommit():
                self._connection.rollback()
                self._connection.setAutoCommit(True)

    def run(self, statement: str) -> None:
        """Runs a statement without result."""
        with _errors():
            java_statement = self._connection.createStatement()
            try:
                java_statement.execute(statement)
            finally:
                java_statement.close()

    def all(self, query: str) -> list[tuple[str | None, ...]]:
        """Returns the rows of a query, with all values as text."""
        with _errors():
            statement = self._connection.createStatement()
            try:
                return _rows(statement.executeQuery(query))
            finally:
                statement.close()

    def columns(self, query: str) -> list[JdbcColumn]:
        """Returns the columns of a query."""
        with _errors():
            statement = self._connection.createStatement()
            try:
                found = statement.executeQuery(query).getMetaData()
                return [_column(found, index + 1) for index in range(found.getColumnCount())]
            finally:
                statement.close()

    def close(self) -> None:
        """Rolls back a transaction that has not ended, and closes the connection."""
        with suppress(*JVM_ERRORS):  # the connection may be broken, which rolls back too
            if not self._connection.getAutoCommit():
                self._connection.rollback()
        with suppress(*JVM_ERRORS):
            self._connection.close()


def open_connection(session: SparkSession, driver: str, url: str, properties: Mapping[str, str]) -> JdbcConnection:
    """Returns a new connection of the JDBC driver class `driver`.

    java.sql.DriverManager would not find the driver, because only the class loader of Spark's jars has it. Raises:
    JdbcError.
    """
    with _errors():
        loader = java_class(session, "java.lang.Thread").currentThread().getContextClassLoader()
        made = loader.loadClass(driver).getConstructors()[0].newInstance(None)
        java_properties = java_class(session, "java.util.Properties")()
        for name, value in properties.items():
            java_properties.setProperty(name, value)
        connection = made.connect(url, java_properties)
    if connection is None:
        raise JdbcError(f"{driver} does not accept the URL")
    return JdbcConnection(connection)


def _column(found: Any, index: int) -> JdbcColumn:
    name, type_ = found.getColumnName(index), found.getColumnTypeName(index)
    return JdbcColumn(name, type_, found.getPrecision(index), found.getScale(index), found.isAutoIncrement(index))


def _rows(result: Any) -> list[tuple[str | None, ...]]:
    count = result.getMetaData().getColumnCount()
    rows = []
    while result.next():
        rows.append(tuple(result.getString(index + 1) for index in range(count)))
    return rows


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except JVM_ERRORS as error:
        if is_jvm_gone(error):
            raise
        lines = causes_of(error)[0].message.splitlines()
        text = " ".join(line.strip() for line in lines if line.strip())
        raise JdbcError(_JAVA_CLASS.sub("", text), _state(error)) from None  # the error of py4j may have the URL


def _state(error: BaseException) -> str:
    """Returns the SQLSTATE of a java.sql.SQLException, with the error code of the database if it has one, such as
    `42000, error 1049`. Empty for another error.
    """
    with suppress(AttributeError, *JVM_ERRORS):
        found = error.java_exception  # type: ignore[attr-defined]
        state, code = found.getSQLState(), found.getErrorCode()
        return f"{state}, error {code}" if state and code else str(state or "")
    return ""
