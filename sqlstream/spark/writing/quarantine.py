"""Writes the rows that data tests quarantine: each batch goes to the sinks of the model, and then to the quarantine.

A quarantine has no versions: rows of all versions of a query are in one place, and say which query and batch wrote
them. So it needs no log: a batch that Spark repeats replaces its rows, or the sink ignores it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from uuid import UUID, uuid5

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, current_timestamp, expr, lit

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.origins import ORIGIN
from sqlstream.compiler.rewrite.data_tests import (
    BATCH,
    ERRORS,
    QUARANTINE_ID,
    QUARANTINED_AT,
    QUERY,
    QUERY_ID,
    SOURCE,
    SOURCE_TYPE,
)
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget, computed_once, in_few_files
from sqlstream.spark.writing.outputs import check_output
from sqlstream.spark.writing.shared import refuse_logged_folder, writer_of
from sqlstream.state.quarantined_rows import QuarantinedRows, quarantined_path, read_quarantined, with_batch

NO_BATCH = MicroBatch(0, "", "", "append", (), {})
"""A batch for the columns of a quarantine."""


def check_quarantine(compiled: CompiledProject, model: CompiledModel, marked: DataFrame, secrets: Secrets) -> None:
    """Checks that the quarantine of `model` can take rows of `marked`, with Spark. Raises: FindingsError."""
    check_place(compiled.quarantines[model.unique_id], model, marked, secrets)


def check_place(place: CompiledModel, model: CompiledModel, marked: DataFrame, secrets: Secrets) -> None:
    """Checks that `place` can take the rows of `marked` that the query of `model` leaves out. Raises: FindingsError."""
    # Spark checks the mode of the query, and the sink gets batches of new rows
    config = place.config.model_copy(update={"output_mode": model.config.output_mode})
    for output in place.outputs:
        check_output(replace(place, config=config), output, quarantined(marked, NO_BATCH), secrets)


def quarantine_target(quarantine: CompiledModel, path: str | None, marked: DataFrame, secrets: Secrets) -> SinkTarget:
    """Returns the target of a quarantine, at `path` if its sink has one."""
    return SinkTarget(quarantine, quarantine.outputs[0], path, quarantined(marked, NO_BATCH), secrets)


def quarantined(marked: DataFrame, batch: MicroBatch) -> DataFrame:
    """Returns the rows of `marked` that violate a test, with the columns that a quarantine adds."""
    rows = marked.where(col(ERRORS).isNotNull())
    is_known = ORIGIN in rows.columns
    rows = rows.withColumn(SOURCE, (col(ORIGIN) if is_known else lit(None)).cast(SOURCE_TYPE)).drop(ORIGIN)
    return rows.withColumns(
        {
            QUERY: lit(batch.model),
            QUERY_ID: lit(batch.query_id),
            BATCH: lit(batch.id).cast("bigint"),
            QUARANTINE_ID: expr("uuid()"),
            QUARANTINED_AT: current_timestamp(),
        }
    )


def quarantine_query_id(query_id: str) -> str:
    """Returns the id under which the quarantine of a query records its batches: a database remembers one batch of each
    id, and may have the table of the model, too.
    """
    return str(uuid5(UUID(query_id), "quarantine"))


def late_query_id(query_id: str) -> str:
    """Returns the id under which the batches of late rows of a query are recorded."""
    return str(uuid5(UUID(query_id), "late_rows"))


def ids_of_query(query_id: str) -> tuple[str, ...]:
    """Returns all ids under which a query records batches."""
    return (query_id, quarantine_query_id(query_id), late_query_id(query_id))


class QuarantineWriter:
    """Writes the rows of each batch that violate no test with `writer`, after `check`, and the others to `quarantine`.

    The quarantine comes last: if it has a batch, the sinks of the model have it too. `released` are rows of the
    quarantine that are written with the first batch, the only one of such a query.
    """

    def __init__(
        self,
        writer: BatchWriter,
        check: Callable[[DataFrame], DataFrame],
        quarantine: SinkTarget,
        count: QuarantineCount,
        released: DataFrame | None = None,
    ) -> None:
        self._writer, self._check, self._target, self._released = writer, check, quarantine, released
        self._count = count
        self._quarantine = writer_of(quarantine, BatchFolders)

    def open(self) -> None:
        """Prepares all sinks. Raises: FindingsError, Spark's errors."""
        self._writer.open()
        self._quarantine.open()
        self._count.open()

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows, which have the column `ERRORS`. Raises: any error of a sink."""
        with computed_once(rows) as kept:
            good = kept.where(col(ERRORS).isNull()).drop(ERRORS, ORIGIN)
            if self._released is not None:
                good = good.unionByName(self._released)
            self._writer.write(self._check(good), batch)
            number = kept.where(col(ERRORS).isNotNull()).count()
            if number:
                bad = quarantined(kept, batch)
                self._quarantine.write(bad, self._target.batch(batch.id, quarantine_query_id(batch.query_id)))
            self._count.add(batch, number)


class QuarantineCount:
    """Counts the rows in quarantine in a file beside the `checkpoint`, so that `status` need not read them."""

    def __init__(self, session: SparkSession, checkpoint: str) -> None:
        self._storage, path = storage_for(checkpoint, session)
        self._path = quarantined_path(path.rpartition("/")[0])
        self._known: QuarantinedRows | None = None

    def open(self) -> None:
        """Reads the count. Raises: OSError, Spark's errors."""
        self._known = read_quarantined(self._storage.read_text(self._path))

    def add(self, batch: MicroBatch, rows: int) -> None:
        """Adds the rows of a batch, which Spark may repeat. Raises: OSError, Spark's errors."""
        count = with_batch(self._known, batch.query_id, batch.id, rows)
        if count is not None:
            self._storage.write_text(self._path, count.to_json())
            self._known = count


class BatchFolders:
    """Writes the files of each batch to a separate folder, which a repeated batch replaces."""

    def __init__(self, target: SinkTarget, folder: str) -> None:
        self._target, self._folder = target, folder

    def open(self) -> None:
        """Checks that no streaming query writes to the folder. Raises: FindingsError."""
        refuse_logged_folder(self._target, self._folder, "quarantine", f"the rows of `{self._target.model.name}`")

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows. Raises: Spark's errors."""
        output = self._target.output
        options = {**batch.options, "partitionOverwriteMode": "dynamic"}
        writer = in_few_files(rows, output).write.format(output.format).options(**options).mode("overwrite")
        writer.partitionBy(QUERY_ID, BATCH, *output.partition_by).save(self._folder)
