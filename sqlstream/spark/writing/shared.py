"""One query that writes each micro-batch to several sinks, which reads and computes the batch once."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.table_formats.writers import CommittingWriter, table_of
from sqlstream.spark.writing.file_batches import FileBatchWriter
from sqlstream.spark.writing.kafka import written_rows
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget, cached
from sqlstream.spark.writing.writers import batch_writer


class SharedWriter:
    """Writes each batch to the sinks in their order, each as often as its own guarantee says.

    If one fails, Spark repeats the batch for all of them: sinks with `exactly once` ignore a batch that they have.
    """

    def __init__(self, targets: Sequence[SinkTarget]) -> None:
        self._parts = [(target, writer_of(target, FileBatchWriter)) for target in targets]

    def open(self) -> None:
        """Prepares all sinks. Raises: FindingsError, Spark's errors."""
        for _, writer in self._parts:
            writer.open()

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows to each sink. Raises: any error of a sink; later sinks do not get the batch then."""
        with cached(rows):
            for target, writer in self._parts:
                writer.write(rows, target.batch(batch.id, batch.query_id))


def writer_of(target: SinkTarget, file_writer: Callable[[SinkTarget, str], BatchWriter]) -> BatchWriter:
    """Returns the writer of batches for a sink of any format. `file_writer` makes the one for a folder of files."""
    writer = batch_writer(target)
    if writer is not None:
        return writer
    table = table_of(target)
    if table is not None:
        return CommittingWriter(target, table)
    if target.place is not None and format_of(target.output.format).writes_files:
        return file_writer(target, target.place)
    return PlainWriter(target)


class PlainWriter:
    """Writes batches with Spark's writer for static rows, which keeps no record of them: at least once."""

    def __init__(self, target: SinkTarget) -> None:
        self._target = target

    def open(self) -> None:
        """Does nothing."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows. Raises: Spark's errors."""
        output = self._target.output
        records = written_rows(self._target.model, output, rows)
        records.write.format(output.format).options(**batch.options).mode("append").save()
