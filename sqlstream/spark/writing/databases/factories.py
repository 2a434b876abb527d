"""The writers of databases, by format."""

from __future__ import annotations

from pathlib import Path

from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.spark.storage.storage import FILE_URI
from sqlstream.spark.writing.databases.sqlite_file import SqliteFile
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import BatchWriter, SinkTarget


def sqlite_writer(target: SinkTarget) -> BatchWriter:
    """Returns the writer of a table in a file, which has the name of the query."""
    path = FILE_URI.sub("", target.place or "")
    return DatabaseWriter(target, SqliteFile(Path(path), SQLITE.quote(target.model.query_id)))
