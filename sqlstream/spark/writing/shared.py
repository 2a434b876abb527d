"""One query that writes each micro-batch to several sinks, which reads and computes the batch once; files with Spark's
own log.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pyspark.sql import DataFrame

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.file_sink import add_batch, file_sink
from sqlstream.spark.jvm.gateway import is_connect
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.kafka import written_rows
from sqlstream.spark.writing.logged_files import add_files, remove_leftovers
from sqlstream.spark.writing.micro_batches import (
    BatchWriter,
    MicroBatch,
    SinkTarget,
    computed_once,
    discard,
    in_few_files,
)
from sqlstream.spark.writing.table_formats.table_writers import CommittingWriter, table_of
from sqlstream.spark.writing.writers import batch_writer
from sqlstream.state.batch_logs import SINK_LOG, last_entry


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
        with computed_once(rows) as kept:
            for target, writer in self._parts:
                writer.write(kept, target.batch(batch.id, batch.query_id))


def writer_of(target: SinkTarget, file_writer: Callable[[SinkTarget, str], BatchWriter]) -> BatchWriter:
    """Returns the writer of batches for a sink of any format. `file_writer` makes the one for a folder of files."""
    writer = batch_writer(target)
    if writer is not None:
        return writer
    # a table without keys, to which Spark's own streaming writer would write if it were the only sink
    table = table_of(target)
    if table is not None:
        return CommittingWriter(target, table)
    if target.path is not None and format_of(target.output.format).writes_files:
        return file_writer(target, target.path)
    return PlainWriter(target)


def refuse_logged_folder(target: SinkTarget, path: str, code: str, rows: str) -> None:
    """Checks that no streaming query writes to the folder to which `rows` go: readers would not see files that its log
    does not list. Raises: FindingsError.
    """
    storage, folder = storage_for(path, target.frame.sparkSession)
    if storage.exists(f"{folder}/{SINK_LOG}"):
        finding = Finding(
            code,
            f"{rows} cannot be written to {path}",
            f"a streaming query has written to this folder, and readers see only the files in its log, {SINK_LOG}",
            f"give the sink of {rows} a folder that no query writes to",
            target.model.file.location,
        )
        raise FindingsError([finding])


class PlainWriter:
    """Writes batches with Spark's writer for static rows, which keeps no record of them: at least once."""

    def __init__(self, target: SinkTarget) -> None:
        self._target = target

    def open(self) -> None:
        """Does nothing."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows. Raises: Spark's errors."""
        output = self._target.output
        records = in_few_files(written_rows(self._target.model, output, rows), output)
        records.write.format(output.format).options(**batch.options).mode("append").save()


class FileBatchWriter:
    """Writes each batch once, as `writeStream` does: the log lists the files of a batch when it is complete. Over
    Connect: in a shared folder, and with a log that sqlstream writes.
    """

    def __init__(self, target: SinkTarget, output: str) -> None:
        self._target, self._output = target, output
        self._sink: Any = None
        self._is_first = True

    def open(self) -> None:
        """Creates Spark's sink. Raises: FindingsError if this Spark does not have it, Spark's errors."""
        target = self._target
        session, output = target.frame.sparkSession, target.output
        if is_connect(session):
            if not isinstance(storage_for(self._output, session)[0], LocalStorage):
                raise FindingsError([self._not_shared()])
            return
        self._sink = call_internal(
            session,
            "sink of files",
            lambda: file_sink(session, output.format, self._output, output.partition_by, target.options),
            lambda: None,
        )
        if self._sink is None:
            raise FindingsError([self._missing()])

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Adds the files of the batch, unless the log has it. Raises: Spark's errors."""
        storage, folder = storage_for(self._output, self._target.frame.sparkSession)
        names = storage.names(f"{folder}/{SINK_LOG}") if self._is_first else ()  # later batches are not repeated
        output = self._target.output
        if self._sink is None and self._is_first:
            remove_leftovers(folder)
        if last_entry(names) >= batch.id:
            discard(rows)
        elif self._sink is None:
            add_files(folder, batch.id, in_few_files(rows, output), output, batch.options)
        else:
            add_batch(self._sink, batch.id, in_few_files(rows, output))
        self._is_first = False

    def _not_shared(self) -> Finding:
        model, sink = self._target.model, self._target.output.sink
        return Finding(
            "unsupported-target",
            f"`{model.name}` cannot add files to sink `{sink}` over Spark Connect, at {self._output}",
            "sqlstream lists the files of each batch in a log, for which Spark Connect needs a shared folder",
            "use a folder that this machine and the server share, or a target with a master",
            model.location_of("sink"),
        )

    def _missing(self) -> Finding:
        model = self._target.model
        return Finding(
            "fan-out",
            f"`{model.name}` cannot write files to sink `{self._target.output.sink}` from a shared query",
            "this needs an internal class of Spark, FileStreamSink, which the installed Spark does not have or the "
            "target disables",
            "use fan_out='separate', which runs a query for each sink",
            model.location_of("sink"),
        )
