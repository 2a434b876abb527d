"""The writers of databases, by format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.databases.dialects import dialect_of
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.spark.secrets import MASK
from sqlstream.spark.storage.storage import FILE_URI
from sqlstream.spark.writing.databases.jdbc_database import JdbcDatabase
from sqlstream.spark.writing.databases.sqlite_file import SqliteFile
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget

_PASSWORD_IN_URL = re.compile(r"(?i)(?:password=([^&;]+)|//[^/@:]+:([^/@]+)@)")


def sqlite_writer(target: SinkTarget) -> BatchWriter:
    """Returns the writer of a table in a file, which has the name of the query."""
    path = FILE_URI.sub("", target.place or "")
    return DatabaseWriter(target, SqliteFile(Path(path), SQLITE.quote(target.model.query_id)))


def jdbc_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer of a table behind a JDBC driver. A batch for any other database is left to Spark (None).

    Raises: FindingsError for a stream into a database that sqlstream cannot write.
    """
    options = target.secrets.resolve_all(target.output.options)
    dialect = dialect_of(target.output.format, options)
    if dialect is None:
        if target.model.streaming:
            raise FindingsError([_unknown_database(target)])
        return None
    passwords = _passwords(options)

    def redact(text: str) -> str:
        for password in passwords:
            text = text.replace(password, MASK)
        return target.secrets.redact(text)

    session = target.frame.sparkSession
    return DatabaseWriter(target, JdbcDatabase(dialect, target.place or "", session, options, redact))


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
