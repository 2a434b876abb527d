"""The writers of the sinks that sqlstream writes itself, by format, and that of files in complete mode."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.formats.formats import FORMATS, format_of
from sqlstream.spark.reading.python_code import import_name, is_data_source, is_foreach
from sqlstream.spark.writing.databases.factories import jdbc_writer, sqlite_writer
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import (
    BatchWriter,
    FunctionWriter,
    LastRowsWriter,
    SinkTarget,
    WriterFactory,
)
from sqlstream.spark.writing.snapshots import snapshot_writer
from sqlstream.spark.writing.table_formats.writers import table_writer


def batch_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer for the sink, None if Spark's own writer serves it. Raises: FindingsError."""
    make, config = _FACTORIES.get(target.output.format), target.model.config
    writer = make(target) if make is not None else None
    if writer is None or not config.sequence_by:
        return writer
    return LastRowsWriter(writer, config.unique_key, config.sequence_by)


def database_writer(target: SinkTarget) -> DatabaseWriter | None:
    """Returns the writer of a table in a database that sqlstream writes, None for any other sink. Raises: FindingsError
    for a stream into a database that it cannot write.
    """
    writer = batch_writer(target) if format_of(target.output.format).is_database else None
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
