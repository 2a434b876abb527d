"""The writers of databases, by format."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from sqlstream.compiler.compiled import Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.dialects import dialect_of
from sqlstream.project.secrets import OptionValue
from sqlstream.spark.secrets import MASK, Secrets
from sqlstream.spark.storage.local import FILE_URI
from sqlstream.spark.writing.databases.database import Database
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from sqlstream.spark.writing.databases.sqlite_file import sqlite_file
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget

_PASSWORD_IN_URL = re.compile(r"(?i)(?:password=([^&;]+)|//[^/@:]+:([^/@]+)@)")


def sqlite_writer(target: SinkTarget) -> BatchWriter:
    """Returns the writer of a table in a file, which has the name of the query or of its version."""
    return DatabaseWriter(target, sqlite_file(FILE_URI.sub("", target.place or ""), target.model.query_id))


def jdbc_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer of a table behind a JDBC driver. A batch for any other database is left to Spark (None).

    Raises: FindingsError for a stream into a database that sqlstream cannot write.
    """
    database = jdbc_database(target.output, target.place or "", target.frame.sparkSession, target.secrets)
    if database is None:
        if target.model.streaming:
            raise FindingsError([_unknown_database(target)])
        return None
    return DatabaseWriter(target, database)


def jdbc_database(output: Output, table: str, session: SparkSession, secrets: Secrets) -> JdbcDatabase | None:
    """Returns a table of the database of a sink, None for a database that sqlstream cannot write."""
    return database_of(output.format, output.options, table, session, secrets)


def database_of(
    format_name: str, given: Mapping[str, OptionValue], table: str, session: SparkSession, secrets: Secrets
) -> JdbcDatabase | None:
    """Returns a table of the database that a source or sink names, None for a database that sqlstream cannot write."""
    options = secrets.resolve_all(given)
    dialect = dialect_of(format_name, options)
    if dialect is None:
        return None
    passwords = _passwords(options)

    def redact(text: str) -> str:
        for password in passwords:
            text = text.replace(password, MASK)
        return secrets.redact(text)

    return JdbcDatabase(dialect, table, session, options, redact)


def is_known_database(output: Output, secrets: Secrets) -> bool:
    """Returns whether sqlstream itself writes to the database of a sink.

    Raises: FindingsError if a secret is not set.
    """
    missing = secrets.missing(output.options, output.location)
    if missing:
        raise FindingsError(missing)
    return dialect_of(output.format, secrets.resolve_all(output.options)) is not None


def plain_table(
    output: Output, place: str, query_id: str, session: Callable[[], SparkSession], secrets: Secrets
) -> Database:
    """Returns the table with the plain name in a database that sqlstream writes, without a connection to it."""
    database = jdbc_database(output, place, session(), secrets) if output.database_table else None
    return database or sqlite_file(FILE_URI.sub("", place), query_id)


def _passwords(options: Mapping[str, str]) -> list[str]:
    """Returns the passwords in options and in the URL, also those that are not secrets of the environment."""
    named = [value for name, value in options.items() if "password" in name.lower() and value]
    url = next((value for name, value in options.items() if name.lower() == "url"), "")
    return named + [part for match in _PASSWORD_IN_URL.findall(url) for part in match if part]


def _unknown_database(target: SinkTarget) -> Finding:
    return Finding(
        "output-mode",
        f"`{target.model.name}` streams into sink `{target.output.sink}`, whose database sqlstream does not know",
        "sqlstream writes streams to PostgreSQL, MariaDB and MySQL, with a URL such as jdbc:postgresql://host/shop",
        "write each batch with a function: format: python, with for example function: sinks:write",
        target.model.place_of("sink"),
    )
