"""The writers of the sinks that sqlstream writes itself, by format, and the databases among them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from importlib.util import find_spec

from pyspark.sql import SparkSession

from sqlstream.compiler.compiled import Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.jdbc_options import dialect_of
from sqlstream.project.databases.logins import PYTHON_DRIVERS, UnmappedOptionError, read_login
from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.project.secret_text import OptionValue
from sqlstream.spark.jvm.gateway import is_connect
from sqlstream.spark.reading.python_code import import_name, is_data_source, is_foreach
from sqlstream.spark.secrets import MASK, Secrets
from sqlstream.spark.storage.local import FILE_URI
from sqlstream.spark.writing.databases.database import Database
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from sqlstream.spark.writing.databases.sqlite_file import sqlite_file
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import (
    BatchWriter,
    FunctionWriter,
    LastRowsWriter,
    SinkTarget,
    WriterFactory,
)
from sqlstream.spark.writing.snapshots import snapshot_writer
from sqlstream.spark.writing.table_formats.table_writers import table_writer

# `?password=x` of PostgreSQL's driver, `//user:x@host` of MySQL's
_PASSWORD_IN_URL = re.compile(r"(?i)(?:password=([^&;]+)|//[^/@:]+:([^/@]+)@)")


def sqlite_writer(target: SinkTarget) -> BatchWriter:
    """Returns the writer of a table in a file, which has the name of the query or of its version."""
    return DatabaseWriter(target, sqlite_file(FILE_URI.sub("", target.path or ""), target.model.query_id))


def jdbc_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer of a table behind a JDBC driver. A batch for any other database is left to Spark (None).

    Raises: FindingsError for a stream into a database that sqlstream cannot write.
    """
    database = jdbc_database(target.output, target.path or "", target.frame.sparkSession, target.secrets)
    if database is None:
        if target.model.streaming:
            raise FindingsError([_unknown_database(target)])
        return None
    _check_driver(target, database)
    return DatabaseWriter(target, database)


def _check_driver(target: SinkTarget, database: JdbcDatabase) -> None:
    """Checks that a process without a JVM has a driver for the database, and that the driver knows the options of the
    sink, of which some may be secrets. Raises: FindingsError.
    """
    if not is_connect(database.session):
        return
    driver = PYTHON_DRIVERS[database.dialect.name]
    what = f"`{target.model.name}` cannot write to sink `{target.output.sink}` over Spark Connect"
    if find_spec(driver) is None:
        why = f"a driver in Python connects to {database.dialect.title}, and its package {driver} is not installed here"
        fix = "install the extra `databases`, for example `pip install 'sqlstream[databases]'`"
        raise FindingsError([Finding("missing-package", what, why, fix, target.model.location_of("sink"))])
    try:
        read_login(database.dialect, database.options)
    except UnmappedOptionError as error:
        why = database.redact(f"a driver in Python connects to {database.dialect.title}: {error}")
        finding = Finding("unsupported-target", what, why, error.fix, target.model.location_of("sink"))
        raise FindingsError([finding]) from None  # the cause may have a password


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
    output: Output, path: str, query_id: str, session: Callable[[], SparkSession], secrets: Secrets
) -> Database:
    """Returns the table with the plain name in a database that sqlstream writes, without a connection to it."""
    database = jdbc_database(output, path, session(), secrets) if output.database_table else None
    return database or sqlite_file(FILE_URI.sub("", path), query_id)


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
        target.model.location_of("sink"),
    )


def batch_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer for the sink, None if Spark's own writer serves it. Raises: FindingsError."""
    make, config = _FACTORIES.get(target.output.format), target.model.config
    writer = make(target) if make is not None else None
    if writer is None or not config.sequence_by:
        return writer
    return LastRowsWriter(writer, config)


def database_writer(target: SinkTarget) -> DatabaseWriter | None:
    """Returns the writer of a table in a database that sqlstream writes, None for any other sink. Raises: FindingsError
    for a stream into a database that it cannot write.
    """
    writer = batch_writer(target) if format_of(target.output.format).is_database else None
    # `sequence_by` wraps the writer, and callers ask the database about its table
    inner = writer.writer if isinstance(writer, LastRowsWriter) else writer
    return inner if isinstance(inner, DatabaseWriter) else None


def _function_writer(target: SinkTarget) -> BatchWriter | None:
    made = import_name(target.output.python or "", target.output.location)
    return None if is_data_source(made) or is_foreach(made) else FunctionWriter(made)


_FACTORIES: Mapping[str, WriterFactory] = {
    "delta": table_writer,
    "iceberg": table_writer,
    "jdbc": jdbc_writer,
    "python": _function_writer,
    "sqlite": sqlite_writer,
    **{name: snapshot_writer for name, known in FORMATS.items() if known.writes_files},
}
