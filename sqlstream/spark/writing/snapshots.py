"""Files of a query in complete mode: each micro-batch writes all rows to a new folder, and switches readers to it."""

from __future__ import annotations

from pyspark.sql import DataFrame

from sqlstream.spark.storage.snapshots import snapshots_of
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget, discard


def snapshot_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer for a sink of files if the query replaces its rows, None otherwise."""
    writes = target.model.writes_snapshots_to(target.output)
    return SnapshotWriter(target, target.place) if writes and target.place else None


class SnapshotWriter:
    """Writes each micro-batch as a snapshot: a folder with all rows, to which the output then points.

    A batch that Spark repeats is written only if the output does not show it yet. A killed query leaves the previous
    snapshot or the new one in place, each complete.
    """

    def __init__(self, target: SinkTarget, output: str) -> None:
        self._target, self._output = target, output

    def open(self) -> None:
        """Does nothing: the first batch creates the output."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows to a new folder, and then makes the output point to it. Raises: OSError, Spark's errors."""
        snapshots = snapshots_of(*storage_for(self._output, self._target.frame.sparkSession))
        name = f"{batch.id}-{batch.query_id}"
        if snapshots.current == name:
            discard(rows)
            return
        output = self._target.output
        # a killed attempt may have left files there
        writer = rows.write.format(output.format).options(**batch.options).mode("overwrite")
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        writer.save(snapshots.folder_of(name))
        snapshots.switch_to(name)
        snapshots.remove_old(batch.query_id)
