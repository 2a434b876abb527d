"""Brings running queries to their end: after the batch that each is running, or now."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.spark.jvm.gateway import Phase, mark_stopped, phase_of, unmark_stopped
from sqlstream.spark.running.query_run import Running
from sqlstream.spark.writing.batch import BatchWrite
from sqlstream.state.runs.events import Notice, RunEvent

IDLE_LOOKS = 10
"""A marked query that is seen this often in a row between two batches waits for its next trigger: it can be stopped."""


class Stopper:
    """Takes queries towards their end, look by look. A batch may take `grace_seconds` after the first look."""

    def __init__(self, tell: Callable[[RunEvent], None], grace_seconds: float) -> None:
        self._tell = tell
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
        phase = phase_of(query)
        running.idle_looks = running.idle_looks + 1 if phase is Phase.WAITING else 0
        if phase is Phase.WAITING and running.idle_looks >= IDLE_LOOKS:
            running.stopped = True
            query.stop()
        elif phase is not Phase.WAITING and (late or now):
            self._interrupt(running, query, late=late)
        elif phase is Phase.WRITING and running.marked is not Phase.WRITING:
            self._mark(running, query)
            running.marked = Phase.WRITING if phase_of(query) is Phase.WRITING else Phase.PLANNING
        elif phase is Phase.WAITING and running.marked is None:
            self._mark(running, query)
            running.marked = Phase.WAITING
        if phase is Phase.PLANNING and running.marked in (Phase.WAITING, Phase.PLANNING):
            unmark_stopped(query)
            running.marked = None

    def tell_interrupted(self, running: Running, why: str) -> None:
        """Says that a batch was cut short."""
        self._tell(Notice(f"{running.name}: interrupted, {why}; the batch runs again next time"))

    def _interrupt(self, running: Running, query: StreamingQuery | BatchWrite, *, late: bool) -> None:
        running.interrupted = True
        self.tell_interrupted(running, f"its batch took over {self._grace:.0f} s" if late else "asked to stop now")
        query.stop()

    def _mark(self, running: Running, query: StreamingQuery) -> None:
        running.was_marked = True
        mark_stopped(query)
