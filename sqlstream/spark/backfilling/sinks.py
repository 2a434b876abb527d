"""Whether a sink has a batch of a query, which decides whether a failed backfill can be taken back."""

from __future__ import annotations

from sqlstream.project.formats.formats import format_of
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.batch_logs import SINK_LOG, entry_names


def has_batch(target: SinkTarget, number: int, query_id: str) -> bool | None:
    """Returns whether the sink records a batch as written. False for a sink that keeps no record, and None if only
    Spark knows it. Raises: OSError, DatabaseError, Spark's errors.
    """
    facts = format_of(target.output.format)
    if facts.writes_files and target.place is not None:
        storage, folder = storage_for(target.place, target.frame.sparkSession)
        return max(entry_names(storage.names(f"{folder}/{SINK_LOG}")), default=-1) >= number
    if facts.is_table or target.output.format == "table":
        return None
    writer = database_writer(target)
    return writer is not None and writer.last_batch(query_id) >= number
