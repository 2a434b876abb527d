"""Runs started queries to their end: collects their progress, stops them after their running batch when asked."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding
from sqlstream.spark.jvm import (
    JVM_ERRORS,
    SPARK_ERRORS,
    Phase,
    has_unfinished_batch,
    is_jvm_gone,
    listen,
    mark_stopped,
    phase_of,
    unmark_stopped,
)
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import at, error_finding
from sqlstream.spark.start import StartOrder, start_query
from sqlstream.state.events import Notice, QueryResult, QueryStarted, RunEvent, Status
from sqlstream.state.progress import BatchProgress, read_progress, total

LOST_END_SECONDS = 5.0
"""How long the end of a query that is no longer active may be on its way: Spark drops events when it is overrun."""
GRACE_SECONDS = 60.0
"""How long a running batch may take after a stop was asked for, before it is interrupted."""
POLL_SECONDS = 0.1
"""How long to wait for an event before looking whether a stop was asked for: a signal handler cannot wake the queue."""
LOOK_SECONDS = 0.01
"""How often a stopping query is looked at: shorter than the planning of any batch."""
IDLE_LOOKS = 10
"""A marked query that is seen this often in a row between two batches waits for its next trigger: it can be stopped."""


@dataclass
class Running:
    """The one mutable record of a run: a query and what has been seen of it."""

    order: StartOrder
    index: int
    query: StreamingQuery | None = None
    started: float = 0.0
    batches: list[BatchProgress] = field(default_factory=list)
    inactive_since: float | None = None
    interrupted: bool = False
    stopped: bool = False
    was_marked: bool = False
    marked: Phase | None = None
    idle_looks: int = 0
    result: QueryResult | None = None


class Runner:
    """Runs queries of one session side by side. `tell` hears every event, in the thread that calls `run`.

    `request_stop` may be called from a signal handler: once to stop after the running batches, twice to stop now.
    """

    def __init__(
        self, secrets: Secrets, tell: Callable[[RunEvent], None], grace_seconds: float = GRACE_SECONDS
    ) -> None:
        self._secrets = secrets
        self._tell = tell
        self._grace = grace_seconds
        self._events: SimpleQueue[tuple[Running, str | None]] = SimpleQueue()
        self._asked = 0
        self._stop_reason: str | None = None
        self._stopping_since: float | None = None

    def request_stop(self) -> None:
        """Asks for the end of the run; may be called at any time, from any thread or a signal handler."""
        self._asked += 1

    @property
    def _is_stopping(self) -> bool:
        return self._asked > 0 or self._stop_reason is not None

    def run(self, orders: Sequence[StartOrder], *, stop_after_seconds: float | None = None) -> tuple[QueryResult, ...]:
        """Starts all of `orders` and returns their results, in their order, when the last has ended.

        If one cannot be started, those before it are stopped and those after it are skipped; a stop that is asked for
        meanwhile has the same effect.
        """
        every = [Running(order, index) for index, order in enumerate(orders, start=1)]
        deadline = None if stop_after_seconds is None else time.monotonic() + stop_after_seconds
        for running in every:
            if self._is_stopping:
                break
            if not self._start(running, len(every)):
                self._stop_reason = f"{running.order.query.model.name} did not start"
                break
        while any(running.query is not None and running.result is None for running in every):
            self._step(every, deadline)
        for running in every:
            if running.result is None:
                self._finish(running, len(every), Status.SKIPPED, None)
        return tuple(running.result for running in every if running.result is not None)

    def _start(self, running: Running, count: int) -> bool:
        model = running.order.query.model
        self._tell(
            QueryStarted(model.name, running.index, count, running.order.query.output.sink, str(running.order.trigger))
        )
        running.started = time.monotonic()
        session = running.order.query.frame.sparkSession
        try:
            listen(session, lambda text: self._events.put((running, text)), lambda: self._events.put((running, None)))
            running.query = start_query(running.order, self._secrets)
        except SPARK_ERRORS as error:
            self._finish(running, count, Status.ERROR, self._failure(running, error))
            return False
        return True

    def _step(self, every: Sequence[Running], deadline: float | None) -> None:
        """Handles one event, or what time brings."""
        try:
            running, text = self._events.get(timeout=self._patience(deadline))
            self._handle(running, text, len(every))
        except Empty:
            self._look_for_lost_ends(every)
        if deadline is not None and time.monotonic() >= deadline and not self._is_stopping:
            self._stop_reason = "the time given is up"
        if self._is_stopping:
            self._stop(every)

    def _patience(self, deadline: float | None) -> float:
        if self._stopping_since is not None:
            return LOOK_SECONDS
        left = POLL_SECONDS if deadline is None else deadline - time.monotonic()
        return max(min(left, POLL_SECONDS), 0.0)

    def _handle(self, running: Running, text: str | None, count: int) -> None:
        if text is not None:
            progress = read_progress(running.order.query.model.name, text)
            running.batches.append(progress)
            self._tell(progress)
        elif running.result is None:
            self._end(running, count)

    def _look_for_lost_ends(self, every: Sequence[Running]) -> None:
        for running in every:
            if running.query is not None and running.result is None and self._is_lost(running, running.query):
                self._end(running, len(every))

    def _is_lost(self, running: Running, query: StreamingQuery) -> bool:
        """Whether the end of `query` will not be heard of: its JVM is gone, or the event is long overdue."""
        try:
            if query.isActive:
                return False
        except JVM_ERRORS:
            return True
        now = time.monotonic()
        running.inactive_since = running.inactive_since or now
        return now - running.inactive_since >= LOST_END_SECONDS

    def _end(self, running: Running, count: int) -> None:
        try:
            error: Exception | None = running.query.exception() if running.query else None
        except JVM_ERRORS as gone:
            error = gone
        if error is not None and not running.interrupted:
            self._finish(running, count, Status.ERROR, self._failure(running, error))
            return
        self._finish(running, count, self._status(running), None)

    def _status(self, running: Running) -> Status:
        """How a query that did not fail has ended. A look that took longer than the planning of a batch may have marked
        it in the wrong moment, where it interrupts itself: the checkpoint tells.
        """
        if running.was_marked and running.query and not running.interrupted and has_unfinished_batch(running.query):
            running.interrupted = True
            self._tell_interrupted(running, "it had just begun a batch when it was stopped")
        if running.interrupted:
            return Status.INTERRUPTED
        return Status.STOPPED if running.stopped or running.was_marked else Status.SUCCESS

    def _failure(self, running: Running, error: Exception) -> Finding:
        model = running.order.query.model
        batches = len(running.batches)
        after = f" after {batches} {'batch' if batches == 1 else 'batches'}" if batches else ""
        return error_finding(
            error,
            code="query-failed",
            what=f"the query of `{model.name}` failed{after}",
            place=at(model.file.location),
            secrets=self._secrets,
            fix="mend the cause and run again: the query goes on where it stopped",
        )

    def _finish(self, running: Running, count: int, status: Status, finding: Finding | None) -> None:
        model = running.order.query.model
        running.result = QueryResult(
            model=model.name,
            unique_id=model.unique_id,
            index=running.index,
            total=count,
            status=status,
            batches=len(running.batches),
            rows_in=total(batch.rows_in for batch in running.batches),
            rows_out=total(batch.rows_out for batch in running.batches),
            seconds=time.monotonic() - running.started if running.started else 0.0,
            output=running.order.output,
            checkpoint=running.order.checkpoint,
            finding=finding,
        )
        self._tell(running.result)

    def _stop(self, every: Sequence[Running]) -> None:
        if self._stopping_since is None:
            self._stopping_since = time.monotonic()
            self._tell_stopping(every)
        late = time.monotonic() - self._stopping_since > self._grace
        for running in every:
            if running.query is None or running.result is not None or running.interrupted:
                continue
            try:
                self._stop_one(running, running.query, late=late)
            except SPARK_ERRORS as error:
                # the look for lost ends notices a JVM that is gone; else it did not stop within Spark's stopTimeout
                if not is_jvm_gone(error):
                    self._finish(running, len(every), Status.ERROR, self._failure(running, error))

    def _tell_stopping(self, every: Sequence[Running]) -> None:
        names = [running.order.query.model.name for running in every if running.query and running.result is None]
        if names:
            rest = "ends after its running batch" if len(names) == 1 else "end after their running batches"
            self._tell(
                Notice(f"stopping, because {self._stop_reason or 'a stop was asked for'}: {', '.join(names)} {rest}")
            )

    def _stop_one(self, running: Running, query: StreamingQuery, *, late: bool) -> None:
        """Takes a query one look further towards its end; see `Phase` for when it may be marked."""
        now = late or self._asked > 1
        if running.marked is Phase.WRITING and not now:
            return  # the batch runs to its end, and the query with it
        phase = phase_of(query)
        running.idle_looks = running.idle_looks + 1 if phase is Phase.WAITING else 0
        if phase is Phase.WAITING and running.idle_looks >= IDLE_LOOKS:
            running.stopped = True
            query.stop()
        elif phase is not Phase.WAITING and now:
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

    def _mark(self, running: Running, query: StreamingQuery) -> None:
        running.was_marked = True
        mark_stopped(query)

    def _interrupt(self, running: Running, query: StreamingQuery, *, late: bool) -> None:
        running.interrupted = True
        self._tell_interrupted(running, f"its batch took over {self._grace:.0f} s" if late else "asked to stop now")
        query.stop()

    def _tell_interrupted(self, running: Running, why: str) -> None:
        self._tell(Notice(f"{running.order.query.model.name}: interrupted, {why}; the batch runs again next time"))
