"""Runs one batch of a query again, and collects its rows instead of writing them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.streaming.listener import StreamingQueryProgress

from sqlstream.spark.jvm.fresh_files import read_fresh_files
from sqlstream.spark.jvm.gateway import java_exceptions
from sqlstream.spark.reading.rows import columns_of, first_rows
from sqlstream.spark.writing.micro_batches import cached
from sqlstream.state.results.rows import ShownColumn


@dataclass(frozen=True)
class BatchRows:
    """The rows of a batch: its columns, at most the first `rows` as JSON values, and the total number. `late` counts
    the rows that were dropped behind the watermark, as Spark counts them.
    """

    columns: tuple[ShownColumn, ...]
    rows: tuple[tuple[object, ...], ...]
    count: int
    late: int = 0


def rerun_batch(frame: DataFrame, checkpoint: str, mode: str, limit: int) -> tuple[BatchRows, dict[str, Any]]:
    """Returns the first `limit` rows that the streaming `frame` emits for the batch that has begun in `checkpoint`, and
    the values that it observes. Spark reads exactly what the offsets of the batch say.

    Raises: Spark's errors.
    """
    found: list[BatchRows] = []

    def take(rows: DataFrame, _number: int) -> None:
        with java_exceptions(), cached(rows):  # once: a second run of the batch would change its state again
            count = rows.count()
            found.append(BatchRows(columns_of(rows), first_rows(rows, limit), count))

    progress = run_once(frame, checkpoint, mode, take)
    rows = found[-1] if found else BatchRows(columns_of(frame), (), 0)
    if progress is None:
        return rows, {}
    late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
    observed = {name: row.asDict() for name, row in progress.observedMetrics.items()}
    return replace(rows, late=late), observed


def run_once(
    frame: DataFrame, checkpoint: str, mode: str, take: Callable[[DataFrame, int], None]
) -> StreamingQueryProgress | None:
    """Runs the batch that has begun in `checkpoint`, and no other, and passes its rows to `take`. Returns what Spark
    reports about the batch. Raises: Spark's errors.
    """
    read_fresh_files(frame.sparkSession)
    writer = frame.writeStream.outputMode(mode).option("checkpointLocation", checkpoint).trigger(once=True)
    query = writer.foreachBatch(take).start()
    try:
        query.awaitTermination()
    finally:
        query.stop()
    return query.lastProgress
