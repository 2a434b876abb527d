"""Stops running queries: after the batch that each is running, or now."""

from __future__ import annotations

import time
from collections.abc import Callable

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.spark.jvm.gateway import Phase, mark_active
from sqlstream.spark.jvm.internals import can_change_queries, mark_terminated, phase_of
from sqlstream.spark.queries.batch_write import BatchWrite
from sqlstream.spark.queries.query_run import LastBatch, QueryRun
from sqlstream.state.runs.events import Notice, RunEvent

WAITING_CHECKS = 10
"""A marked query that is between two batches in this many checks in a row waits for its trigger and can be stopped."""


class Stopper:
    """Stops queries step by step. Running batches may take `grace_seconds` after `begin`."""

    def __init__(self, notify: Callable[[RunEvent], None], grace_seconds: float) -> None:
        self._notify = notify
        self._grace = grace_seconds
        self._since: float | None = None

    @property
    def is_stopping(self) -> bool:
        """Whether `begin` has been called."""
        return self._since is not None

    def begin(self) -> None:
        """Starts the grace time."""
        self._since = time.monotonic()

    def step(self, run: QueryRun, query: StreamingQuery | BatchWrite, *, now: bool) -> None:
        """Takes the next step to stop a query; see `Phase` for when a query can be marked.

        Interrupts its batch if `now` is set, or the grace time is over. Raises: Spark's errors.
        """
        late = self._since is not None and time.monotonic() - self._since > self._grace
        if isinstance(query, BatchWrite):
            if late or now:
                self._interrupt(run, query, late=late)
            return
        if run.order.trigger.facts.has_epochs:
            run.stopped = True
            query.stop()
            return
        if run.marked_in is Phase.WRITING and not (late or now):
            return  # the query ends after its batch
        phase = _phase_of(run, query)
        if phase is None:
            self._stop_publicly(run, query, late=late, now=now)
        else:
            self._stop_in(phase, run, query, late=late, now=now)

    def _stop_in(self, phase: Phase, run: QueryRun, query: StreamingQuery, *, late: bool, now: bool) -> None:
        """Marks a query that is in `phase`, removes a mark that came too early, or stops the query."""
        run.waiting_checks = run.waiting_checks + 1 if phase is Phase.WAITING else 0
        if phase is Phase.WAITING and run.waiting_checks >= WAITING_CHECKS:
            run.stopped = True
            query.stop()
        elif phase is not Phase.WAITING and (late or now):
            self._interrupt(run, query, late=late)
        elif phase is Phase.WRITING and run.marked_in is not Phase.WRITING:
            if self._mark(run, query):
                # asked again: if the batch has ended since, the query may find the mark while it plans the next one
                run.marked_in = Phase.WRITING if phase_of(query) is Phase.WRITING else Phase.PLANNING
        elif phase is Phase.WAITING and run.marked_in is None:
            run.marked_in = Phase.WAITING if self._mark(run, query) else None
        # a query that finds the mark while it plans a batch would interrupt itself
        if phase is Phase.PLANNING and run.marked_in in (Phase.WAITING, Phase.PLANNING):
            mark_active(query)
            run.marked_in = None

    def notify_interrupted(self, run: QueryRun, why: str) -> None:
        """Reports that a batch was interrupted."""
        self._notify(Notice(f"{run.name}: interrupted, {why}; the next run repeats the batch"))

    def _interrupt(self, run: QueryRun, query: StreamingQuery | BatchWrite, *, late: bool) -> None:
        run.interrupted = True
        self.notify_interrupted(
            run, f"its batch took more than {self._grace:.0f} s" if late else "an immediate stop was requested"
        )
        query.stop()

    def _mark(self, run: QueryRun, query: StreamingQuery) -> bool:
        """Marks the query. If this Spark cannot, the next steps use `_stop_publicly`."""
        run.was_marked = run.can_be_marked = mark_terminated(query)
        return run.was_marked

    def _stop_publicly(self, run: QueryRun, query: StreamingQuery, *, late: bool, now: bool) -> None:
        """Stops the query when its batch has ended. This interrupts the next batch if it has begun; it runs again."""
        if run.last_batch is None:
            run.last_batch = LastBatch(query)
        if run.last_batch.has_ended():
            run.stopped = True
            query.stop()
        elif late or now:
            self._interrupt(run, query, late=late)


def _phase_of(run: QueryRun, query: StreamingQuery) -> Phase | None:
    """Returns the phase of the query, None if it cannot be marked."""
    if run.can_be_marked is None:
        run.can_be_marked = can_change_queries(run.session)
    return phase_of(query) if run.can_be_marked else None
