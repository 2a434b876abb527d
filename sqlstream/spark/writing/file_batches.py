"""Adds micro-batches to files with Spark's own log of a file sink, from a query that writes to several sinks."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.jvm.file_sink import add_batch, file_sink
from sqlstream.spark.jvm.internals import call_internal
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import MicroBatch, SinkTarget, discard
from sqlstream.state.batch_logs import SINK_LOG, entry_names


class FileBatchWriter:
    """Writes each batch once, as `writeStream` does: the log lists the files of a batch when it is complete."""

    def __init__(self, target: SinkTarget, output: str) -> None:
        self._target, self._output = target, output
        self._sink: Any = None
        self._is_first = True

    def open(self) -> None:
        """Creates Spark's sink. Raises: FindingsError if this Spark does not have it, Spark's errors."""
        target = self._target
        session, output = target.frame.sparkSession, target.output
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
        if self._is_first and self._last_batch() >= batch.id:  # later batches are not repeated
            discard(rows)
        else:
            add_batch(self._sink, batch.id, rows)
        self._is_first = False

    def _last_batch(self) -> int:
        storage, folder = storage_for(self._output, self._target.frame.sparkSession)
        return max(entry_names(storage.names(f"{folder}/{SINK_LOG}")), default=-1)

    def _missing(self) -> Finding:
        model = self._target.model
        return Finding(
            "fan-out",
            f"`{model.name}` cannot write files to sink `{self._target.output.sink}` from a shared query",
            "this needs an internal class of Spark, FileStreamSink, which the installed Spark does not have or the "
            "target disables",
            "use fan_out='separate', which runs a query for each sink",
            model.place_of("sink"),
        )
