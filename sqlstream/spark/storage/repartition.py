"""Has Spark repartition the state in a checkpoint, and completes the log of each file sink."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.file_sink import add_empty_batch, sink_log
from sqlstream.spark.jvm.internals import call_internal


def repartition_state(session: SparkSession, checkpoint: str, partitions: int) -> None:
    """Adds a batch to `checkpoint` that reads nothing and has the state in `partitions` partitions. Changes no file.

    Raises: Spark's errors. The batch may then have begun.
    """
    manager = session._streamingCheckpointManager  # noqa: SLF001  # its Scala counterpart is public
    manager.repartition(checkpoint, partitions)


def can_log_batches(session: SparkSession, outputs: Sequence[str]) -> bool:
    """Returns whether `log_empty_batch` is possible for these outputs."""

    def find_logs() -> bool:
        for output in outputs:
            sink_log(session, output)
        return True

    return not outputs or call_internal(session, "log of a file sink", find_logs, lambda: False)


def log_empty_batch(session: SparkSession, outputs: Sequence[str], number: int) -> None:
    """Adds batch `number` to the log of each file sink that does not have it, as a batch without rows would.

    Spark 4.3 does not: later the log cannot be read, and the query fails when it compacts the log
    (BATCH_METADATA_NOT_FOUND). Raises: Spark's errors.
    """
    for output in outputs:
        add_empty_batch(session, sink_log(session, output), number)
