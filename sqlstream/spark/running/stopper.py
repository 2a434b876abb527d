"""Brings running queries to their end: after the batch that each is running, or now."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.spark.jvm.gateway import Phase, mark_active
from sqlstream.spark.jvm.internals import can_change_queries, mark_terminated, phase_of
from sqlstream.spark.running.polling import LastBatch
from sqlstream.spark.running.query_run import Running
from sqlstream.spark.writing.batch import BatchWrite
from sqlstream.state.runs.events import Notice, RunEvent

IDLE_LOOKS = 10
"""A marked query that is seen this often in a row between two batches waits for its next trigger: it can be stopped."""


class Stopper:
    """Takes queries towards their end, look by look. A batch may take `grace_seconds` after the first look."""

    def __init__(self, notify: Callable[[RunEvent], None], grace_seconds: float) -> None:
        self._notify = notify
        self._grace = grace_seconds
        self._since: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether a first look has been taken."""
        return self._since is not None

    def begin(self) -> None:
        """Lets the grace time begin."""
        self._since = time.monotonic()

    def look(self, running: Running, query: StreamingQuery | BatchWrite, *, now: bool) -> None:
        """Takes a query one look further towards its end; see `Phase` for when it may be marked.

        With `now` its batch is interrupted, as it is when the grace time is over. Raises: Spark's errors.
        """
        late = self._since is not None and time.monotonic() - self._since > self._grace
        if isinstance(query, BatchWrite):
            if late or now:
                self._interrupt(running, query, late=late)
            return
        if running.order.trigger.kind == "continuous":  # no batches: what comes after its last epoch is read again
            running.stopped = True
            query.stop()
            return
        if running.marked is Phase.WRITING and not (late or now):
            return  # the batch runs to its end, and the query with it
        phase = _phase_of(running, query)
        if phase is None:
            self._stop_publicly(running, query, late=late, now=now)
        else:
            self._move_on(running, query, phase, late=late, now=now)

    def _move_on(self, running: Running, query: StreamingQuery, phase: Phase, *, late: bool, now: bool) -> None:
        """Marks a query that is in `phase`, takes a mark back that came too early, or stops it."""
        running.idle_looks = running.idle_looks + 1 if phase is Phase.WAITING else 0
        if phase is Phase.WAITING and running.idle_looks >= IDLE_LOOKS:
            running.stopped = True
            query.stop()
        elif phase is not Phase.WAITING and (late or now):
            self._interrupt(running, query, late=late)
        elif phase is Phase.WRITING and running.marked is not Phase.WRITING:
            if self._mark(running, query):
                running.marked = Phase.WRITING if phase_of(query) is Phase.WRITING else Phase.PLANNING
        elif phase is Phase.WAITING and running.marked is None:
            running.marked = Phase.WAITING if self._mark(running, query) else None
        if phase is Phase.PLANNING and running.marked in (Phase.WAITING, Phase.PLANNING):
            mark_active(query)
            running.marked = None

    def notify_interrupted(self, running: Running, why: str) -> None:
        """Says that a batch was cut short."""
        self._notify(Notice(f"{running.name}: interrupted, {why}; the next run repeats the batch"))

    def _interrupt(self, running: Running, query: StreamingQuery | BatchWrite, *, late: bool) -> None:
        running.interrupted = True
        self.notify_interrupted(
            running, f"its batch took more than {self._grace:.0f} s" if late else "an immediate stop was requested"
        )
        query.stop()

    def _mark(self, running: Running, query: StreamingQuery) -> bool:
        """Marks the query. Where this Spark has no mark, the next looks stop the query as `_stop_publicly` does."""
        running.was_marked = running.can_be_marked = mark_terminated(query)
        return running.was_marked

    def _stop_publicly(self, running: Running, query: StreamingQuery, *, late: bool, now: bool) -> None:
        """Stops the query when its batch has ended. If the next one has begun, it is cut short and runs again."""
        if running.last_batch is None:
            running.last_batch = LastBatch(query)
        if running.last_batch.has_ended():
            running.stopped = True
            query.stop()
        elif late or now:
            self._interrupt(running, query, late=late)


def _phase_of(running: Running, query: StreamingQuery) -> Phase | None:
    """What the query is doing, None where it cannot be marked."""
    if running.can_be_marked is None:
        running.can_be_marked = can_change_queries(running.session)
    return phase_of(query) if running.can_be_marked else None
