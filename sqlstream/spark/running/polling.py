"""The progress of a query where Spark has no listener for it: asked for again and again, by public API alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

Seen = tuple[str, int, str]
"""A run of a query, a batch of it, and when Spark began to look for that."""


class Polling:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last, as a listener would.

    Spark remembers the last 100 batches of a query, so `poll` misses none while it is called several times a second.
    """

    def __init__(self, query: StreamingQuery, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._query = query
        self._on_progress = on_progress
        self._on_end = on_end
        self._seen: Seen | None = None
        self._has_ended = False

    def poll(self) -> None:
        """Looks for new batches, and for the end. Raises: Spark's errors."""
        if self._has_ended:
            return
        is_active = self._query.isActive  # asked first: the last batch is then among those that are read
        for progress in self._new():
            self._on_progress(progress.json)
        if not is_active:
            self._has_ended = True
            self._on_end()

    def _new(self) -> Iterator[StreamingQueryProgress]:
        last = self._query.lastProgress
        if last is None or seen_of(last) == self._seen:
            return
        recent = self._query.recentProgress
        known = [index for index, progress in enumerate(recent) if seen_of(progress) == self._seen]
        for progress in recent[known[-1] + 1 if known else 0 :]:
            self._seen = seen_of(progress)
            yield progress


class LastBatch:
    """The batch that a query was in when it was asked to stop, as far as Spark's public API shows it."""

    def __init__(self, query: StreamingQuery) -> None:
        self._query = query
        self._before = self._latest()

    def has_ended(self) -> bool:
        """Returns whether it has, or whether there was none. The next one may have begun. Raises: Spark's errors."""
        return not self._query.status["isTriggerActive"] or self._latest() != self._before

    def _latest(self) -> Seen | None:
        last = self._query.lastProgress
        return None if last is None else seen_of(last)


def seen_of(progress: StreamingQueryProgress) -> Seen:
    """Returns what tells `progress` from any other of its query."""
    return str(progress.runId), progress.batchId, progress.timestamp
