"""The temporary checkpoint of a backfill: one batch, which reads history, of the query with the same id; and whether
its sink has the batch.

The id and the number of the batch are those of the query's own checkpoint. So the sink records the batch as one of the
stream, and writes it once however often it runs.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from sqlstream.app.replay.batch_entries import entry_of
from sqlstream.app.replay.copies import write_texts
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import SinkTarget
from sqlstream.spark.writing.writers import database_writer
from sqlstream.state.backfill.record import Backfill, SourceHistory
from sqlstream.state.batch_logs import FILES, SINK_LOG, last_entry, source_offsets


def write_history(
    session: SparkSession, folder: str, backfill: Backfill, identity: str, planned: str, committed: str
) -> None:
    """Writes a checkpoint to `folder` in which the batch of `backfill` has begun. `identity`, `planned` and `committed`
    are the file with the query's id and the entries of the last batch. Raises: OSError, Spark's errors.
    """
    number, known = backfill.batch, dict(source_offsets(planned))
    before = [(key, _start(backfill.sources.get(key), offset)) for key, offset in known.items()]
    after = [(key, _end(backfill.sources.get(key), offset)) for key, offset in known.items()]
    texts: dict[str, str | None] = {
        "metadata": identity,
        f"offsets/{number - 1}": entry_of(planned, before),
        f"commits/{number - 1}": committed,
        f"offsets/{number}": entry_of(planned, after),
    }
    for key, history in backfill.sources.items():
        if history.form == FILES:
            texts[f"sources/{key}/0"] = _log_entry(history)
    write_texts(session, folder, texts)


def _start(history: SourceHistory | None, offset: Any) -> Any:
    return offset if history is None else history.start


def _end(history: SourceHistory | None, offset: Any) -> Any:
    if history is None:
        return offset
    return {"logOffset": 0} if history.form == FILES else history.end


def _log_entry(history: SourceHistory) -> str:
    """Returns the entry of a source's log that names the files (FileStreamSource.FileEntry)."""
    entries: list[Mapping[str, object]] = [
        {"path": file.uri, "timestamp": file.modified, "batchId": 0} for file in history.files
    ]
    return "\n".join(["v1", *(json.dumps(entry, separators=(",", ":")) for entry in entries)])


def has_batch(target: SinkTarget, number: int, query_id: str) -> bool | None:
    """Returns whether the sink records a batch as written. False for a sink that keeps no record, and None if only
    Spark knows it. Raises: OSError, DatabaseError, Spark's errors.
    """
    facts = format_of(target.output.format)
    if facts.writes_files and target.place is not None:
        storage, folder = storage_for(target.place, target.frame.sparkSession)
        return last_entry(storage.names(f"{folder}/{SINK_LOG}")) >= number
    if facts.is_table or target.output.format == "table":
        return None
    writer = database_writer(target)
    return writer is not None and writer.last_batch(query_id) >= number
