"""Copies what one batch of a query needs from its checkpoint to a temporary one, and runs it there again."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress

from sqlstream.app.replay.batch_entries import BatchEntries, BatchSource, state_versions
from sqlstream.spark.jvm.fresh_files import read_fresh_files
from sqlstream.spark.jvm.gateway import java_exceptions
from sqlstream.spark.reading.plain_rows import columns_of, first_rows
from sqlstream.spark.storage.hadoop import hadoop_copy
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.storage import storage_for
from sqlstream.spark.writing.micro_batches import computed_once
from sqlstream.state.batch_logs import COMMITS_LINES, OFFSETS_LINES, entry_names, is_complete
from sqlstream.state.repartitions import METADATA_FILE, STATE_FILE
from sqlstream.state.shown_rows import ShownColumn

_WHOLE = ("zip", "snapshot")
"""The kinds of files that have the whole state, not only its changes."""


@contextmanager
def temporary_folder(session: SparkSession, storage: str | None) -> Iterator[str]:
    """Yields a new folder, and removes it at the end. It is below `storage` if executors on other machines must reach
    it, and otherwise (None) a temporary folder of this machine.
    """
    if storage is None:
        with TemporaryDirectory(prefix="sqlstream-", ignore_cleanup_errors=True) as folder:
            yield f"file:{folder}"
        return
    folder = f"{storage}/temporary/{uuid4().hex}"
    try:
        yield folder
    finally:
        files, path = storage_for(folder, session)
        if files.exists(path):
            files.remove(path)


@dataclass(frozen=True)
class StoredCheckpoint:
    """The checkpoint of a query, which is only read."""

    session: SparkSession
    path: str

    def batches(self) -> list[int]:
        """Returns the numbers of the batches that can be replayed, in order: their offsets exist, and those and the
        commit of the batch before.
        """
        planned, committed = (entry_names(self._names(log)) for log in ("offsets", "commits"))
        return [number for number in sorted(planned) if number == 0 or number - 1 in planned.keys() & committed.keys()]

    def is_committed(self, number: int) -> bool:
        """Returns whether a batch has ended."""
        return number in entry_names(self._names("commits"))

    def last(self) -> int:
        """Returns the last batch that has begun and can be replayed, 0 if there is none."""
        return next((number for number in reversed(self.batches()) if self.entries(number) is not None), 0)

    def entries(self, number: int) -> BatchEntries | None:
        """Returns the entries of a batch, None if one is missing or incomplete. Raises: OSError, Spark's errors."""
        planned = self._text(f"offsets/{number}", OFFSETS_LINES)
        if number == 0:
            return None if planned is None else BatchEntries(0, planned, None, None)
        before = self._text(f"offsets/{number - 1}", OFFSETS_LINES)
        committed = self._text(f"commits/{number - 1}", COMMITS_LINES)
        if planned is None or before is None or committed is None:
            return None
        return BatchEntries(number, planned, before, committed)

    def state_batches(self) -> set[int] | None:
        """Returns the batches whose state before them still exists, None if the query keeps no state."""
        stores: dict[str, list[tuple[int, bool]]] = {}
        for name in self._state_files():
            match = STATE_FILE.search(name)
            if match is not None:
                files = stores.setdefault(name.rpartition("/")[0], [])
                files.append((int(match["version"]), match["kind"] in _WHOLE))
        return state_versions(stores)

    def copy(self, folder: str, entries: BatchEntries, sources: Sequence[BatchSource], *, with_state: bool) -> None:
        """Writes a checkpoint to `folder` in which the batch of `entries` has begun, and is not committed.

        `sources` are those of `entries` in order: their logs are copied. With `with_state`, the state before the batch
        is copied too. Raises: OSError, Spark's errors.
        """
        number = entries.number
        texts = {
            "metadata": self._text("metadata"),
            f"offsets/{number}": entries.planned,
            f"offsets/{number - 1}": entries.before,
            f"commits/{number - 1}": entries.committed,
        }
        write_texts(self.session, folder, texts)
        for position, source in enumerate(sources):
            # without a name, Spark knows a source by its position among those of the query
            key = str(position) if source.key.isdigit() else source.key
            names = [name for name in self._names(f"sources/{source.key}") if not name.startswith(".")]
            logs = {f"sources/{key}/{name}": self._text(f"sources/{source.key}/{name}") for name in names}
            write_texts(self.session, folder, logs)
        if with_state:
            files = [f"state/{name}" for name in self._state_files() if _is_before(name, number)]
            copy_files(self.session, self.path, folder, files)

    def _names(self, name: str) -> tuple[str, ...]:
        storage, path = storage_for(self.path, self.session)
        return storage.names(f"{path}/{name}")

    def _state_files(self) -> list[str]:
        storage, path = storage_for(self.path, self.session)
        names = (file.name for file in storage.files(f"{path}/state"))
        return [name for name in names if not name.rpartition("/")[2].startswith(".")]

    def _text(self, name: str, lines: int | None = None) -> str | None:
        storage, path = storage_for(self.path, self.session)
        text = storage.read_text(f"{path}/{name}")
        return None if text is None or (lines is not None and not is_complete(text, lines)) else text


def _is_before(name: str, batch: int) -> bool:
    """Returns whether a file of the state is needed to run `batch`. The state before batch n has version n."""
    state, metadata = STATE_FILE.search(name), METADATA_FILE.search(name)
    if state is not None:
        return int(state["version"]) <= batch
    return batch > 0 and (metadata is None or int(metadata["batch"]) < batch)


def write_texts(session: SparkSession, folder: str, texts: dict[str, str | None]) -> None:
    """Writes files below `folder`, and skips those without a text. Raises: OSError, Spark's errors."""
    storage, path = storage_for(folder, session)
    for name, text in texts.items():
        if text is not None:
            storage.write_text(f"{path}/{name}", text)


def copy_files(session: SparkSession, source: str, destination: str, names: Iterable[str]) -> None:
    """Copies the files `names` of one folder to another. Raises: OSError, Spark's errors."""
    (from_storage, from_path), (to_storage, to_path) = (storage_for(path, session) for path in (source, destination))
    is_local = isinstance(from_storage, LocalStorage) and isinstance(to_storage, LocalStorage)
    for name in names:
        if is_local:
            Path(to_path, name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(f"{from_path}/{name}", f"{to_path}/{name}")
        else:
            hadoop_copy(session, f"{source}/{name}", f"{destination}/{name}")


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
        # a second computation would change the state of the batch again
        with java_exceptions(), computed_once(rows) as kept:
            count = kept.count()
            found.append(BatchRows(columns_of(kept), first_rows(kept, limit), count))

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
