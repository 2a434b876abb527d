"""Writes the rows that Spark drops because they are behind the watermark: each batch goes to the sinks of the model,
and then its late rows to `quarantine_sink`. As in a quarantine, rows of all versions of the query are in one place.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.jvm.late_rows import UnknownLateRowsError, late_rows, rows_before_state
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget, computed_once
from sqlstream.spark.writing.quarantine import NO_BATCH, BatchFolders, check_place, late_query_id, quarantined
from sqlstream.spark.writing.shared import writer_of


def checked_late_rows(compiled: CompiledProject, model: CompiledModel, frame: DataFrame, secrets: Secrets) -> DataFrame:
    """Returns the rows as they enter the state of `frame`, the query of `model`, after Spark has checked that the late
    ones can be written. Raises: FindingsError if they cannot, or cannot be known.
    """
    try:
        rows = rows_before_state(frame)
    except UnknownLateRowsError as error:
        finding = Finding(
            "quarantine",
            f"`{model.name}` cannot keep its late rows",
            str(error),
            "remove late_rows; the lines of batches and `status` still count late rows",
            model.location_of("late_rows"),
        )
        raise FindingsError([finding]) from error
    check_place(compiled.late_rows[model.unique_id], model, rows, secrets)
    return rows


def late_target(
    compiled: CompiledProject, model: CompiledModel, path: str | None, before_state: DataFrame, secrets: Secrets
) -> SinkTarget:
    """Returns the target of the late rows of `model`, at `path` if its sink has one."""
    place = compiled.late_rows[model.unique_id]
    return SinkTarget(place, place.outputs[0], path, quarantined(before_state, NO_BATCH), secrets)


class LateRowsWriter:
    """Writes each batch with `writer`, and then its late rows to `target`: if it has them, the sinks of the model have
    the batch.
    """

    def __init__(self, writer: BatchWriter, target: SinkTarget) -> None:
        self._writer, self._target = writer, target
        self._is_first = True
        self._late = writer_of(target, BatchFolders)

    def open(self) -> None:
        """Prepares all sinks. Raises: FindingsError, Spark's errors."""
        self._writer.open()
        self._late.open()

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the batch, and reads its late rows if there are any. Raises: any error of a sink."""
        is_first, self._is_first = self._is_first, False  # a restart begins with a new writer
        if is_first:  # only this batch can be a repeated one, which Delta Lake does not compute again
            with computed_once(rows) as kept:
                self._writer.write(kept, batch)
                kept.count()
        else:
            self._writer.write(rows, batch)
        (query,) = self._target.frame.sparkSession.streams.active  # each query has its own session
        late = late_rows(query)
        if late is None:
            return
        with computed_once(quarantined(late, batch)) as found:  # the ids and the time of a row are the same in each use
            if not found.isEmpty():
                self._late.write(found, self._target.batch(batch.id, late_query_id(batch.query_id)))
