"""The writers of the sinks that sqlstream writes itself, by format."""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.project.formats.formats import FORMATS
from sqlstream.spark.reading.python_code import import_name, is_data_source, is_foreach
from sqlstream.spark.table_formats.writers import table_writer
from sqlstream.spark.writing.databases.factories import jdbc_writer, sqlite_writer
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.micro_batches import BatchWriter, FunctionWriter, LastRowsWriter, SinkTarget, WriterFactory
from sqlstream.spark.writing.snapshots import snapshot_writer


def batch_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer for the sink, None if Spark's own writer serves it. Raises: FindingsError."""
    make, config = _FACTORIES.get(target.output.format), target.model.config
    writer = make(target) if make is not None else None
    if writer is None or not config.sequence_by:
        return writer
    return LastRowsWriter(writer, config.unique_key, config.sequence_by)


def recorded_batch(writer: BatchWriter, query_id: str) -> int | None:
    """Returns the last batch of a query that the sink of `writer` has recorded, -1 without one, and None if it records
    none. Raises: DatabaseError.
    """
    inner = writer.writer if isinstance(writer, LastRowsWriter) else writer
    return inner.last_batch(query_id) if isinstance(inner, DatabaseWriter) else None


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
