"""Polls the progress of a query with the public API, if Spark has no listener for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

BatchKey = tuple[str, int, str]
"""The query's run id, the batch number, and the time of the batch's trigger."""


class Polling:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last batch, like a listener.

    Spark keeps the last 100 batches of a query, so calling `poll` several times a second misses none.
    """

    def __init__(self, query: StreamingQuery, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._query = query
        self._on_progress = on_progress
        self._on_end = on_end
        self._seen: BatchKey | None = None
        self._has_ended = False

    def poll(self) -> None:
        """Reports new batches and the end. Raises: Spark's errors."""
        if self._has_ended:
            return
        is_active = self._query.isActive  # first, so that the progress below includes the last batch
        for progress in self._new():
            self._on_progress(progress.json)
        if not is_active:
            self._has_ended = True
            self._on_end()

    def _new(self) -> Iterator[StreamingQueryProgress]:
        last = self._query.lastProgress
        if last is None or batch_key(last) == self._seen:
            return
        recent = self._query.recentProgress
        known = [index for index, progress in enumerate(recent) if batch_key(progress) == self._seen]
        for progress in recent[known[-1] + 1 if known else 0 :]:
            self._seen = batch_key(progress)
            yield progress


class LastBatch:
    """The batch that a query ran at the stop request, according to Spark's public API."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._before = self._latest()

    def has_ended(self) -> bool:
        """Returns whether the batch has ended, or there was none; the next one may run. Raises: Spark's errors."""
        return not self._query.status["isTriggerActive"] or self._latest() != self._before

    def _latest(self) -> BatchKey | None:
        last = self._query.lastProgress
        return None if last is None else batch_key(last)


def batch_key(progress: StreamingQueryProgress) -> BatchKey:
    """Returns the key that identifies the batch of `progress`."""
    return str(progress.runId), progress.batchId, progress.timestamp
