"""Supervises the queries of a run: starts them, collects their progress, starts those again that fail, stops all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.jvm.gateway import JVM_ERRORS, SPARK_ERRORS, is_jvm_gone
from sqlstream.spark.jvm.internals import add_listener, unfinished_batch
from sqlstream.spark.running.endpoints import UnreachableError, check_brokers
from sqlstream.spark.running.failures import failure_finding
from sqlstream.spark.running.kept_cores import KeptCores
from sqlstream.spark.running.polling import Polling
from sqlstream.spark.running.query_run import Running
from sqlstream.spark.running.start import StartOrder, start_query
from sqlstream.spark.running.stopper import Stopper
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.spark_errors import fails_again
from sqlstream.spark.writing.batch import BatchWrite
from sqlstream.state.runs.events import (
    Notice,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QueryStarted,
    RunEvent,
    Status,
)
from sqlstream.state.runs.figures import add_batch
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.progress import read_progress

LOST_END_SECONDS = 5.0
"""How long the end of a query that is no longer active may be on its way: Spark drops events when it is overrun."""
GRACE_SECONDS = 60.0
"""How long a running batch may take after a stop was asked for, before it is interrupted."""
POLL_SECONDS = 0.1
"""How long to wait for an event before looking whether a stop was asked for: a signal handler cannot wake the queue."""
INITIALIZING = "Initializing"
"""How Spark's message begins of a query that has not looked for data yet (StreamExecution of Spark 4.3)."""
LOOK_SECONDS = 0.01
"""How often a stopping query is looked at: shorter than the planning of any batch."""


class Runner:
    """Runs queries of one session side by side. `notify` hears every event, in the thread that calls `run`.

    `restart` gives the order with which a query that failed starts again, and raises FindingsError where it cannot.

    `request_stop` may be called from a signal handler: once to stop after the running batches, twice to stop now.
    """

    def __init__(
        self,
        secrets: Secrets,
        notify: Callable[[RunEvent], None],
        limits: RunLimits,
        restart: Callable[[StartOrder], StartOrder],
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._secrets = secrets
        self._notify = notify
        self._limits = limits
        self._restart = restart
        self._stopper = Stopper(notify, grace_seconds)
        self._cores = KeptCores(notify)
        self._events: SimpleQueue[tuple[Running, str | None]] = SimpleQueue()
        self._every: list[Running] = []
        self._asked = 0
        self._stop_reason: str | None = None

    def request_stop(self) -> None:
        """Asks for the end of the run; may be called at any time, from any thread or a signal handler."""
        self._asked += 1

    @property
    def _is_stopping(self) -> bool:
        return self._asked > 0 or self._stop_reason is not None

    def run(self, orders: Sequence[StartOrder]) -> tuple[QueryResult, ...]:
        """Starts all of `orders` and returns their results, in their order, when the last has ended.

        A query that fails is started again as its model says, and does not stop the others. Those that have not been
        started when a stop is asked for are skipped.
        """
        self._every = [Running(order, index) for index, order in enumerate(orders, start=1)]
        began = time.monotonic()
        while any(running.result is None for running in self._every):
            if self._is_stopping:
                self._stop()
            else:
                self._start_next()
                self._cores.look(self._every)
                self._stop_reason = self._reason_to_stop(time.monotonic() - began)
            self._take_event()
        return tuple(running.result for running in self._every if running.result is not None)

    def _reason_to_stop(self, seconds: float) -> str | None:
        if self._stop_reason is not None:
            return self._stop_reason
        if self._limits.after_seconds is not None and seconds >= self._limits.after_seconds:
            return "the time limit was reached"
        idle = self._limits.idle_seconds
        left = [running for running in self._every if running.result is None]
        if idle is not None and left and all(self._has_been_idle(running, idle) for running in left):
            return f"no query had anything to read for {idle:g} s"
        return None

    def _has_been_idle(self, running: Running, seconds: float) -> bool:
        if running.order.trigger.kind == "continuous":
            return False  # Spark does not say what it reads
        if not running.is_active or running.query is None or time.monotonic() - running.active_at < seconds:
            return False
        try:
            status = running.query.status
        except SPARK_ERRORS:  # its end is on its way
            return False
        begins = status["message"].startswith(INITIALIZING)
        running.has_looked |= not begins and not status["isTriggerActive"]
        if begins or (status["isTriggerActive"] and (status["isDataAvailable"] or not running.has_looked)):
            running.active_at = time.monotonic()  # it starts, looks for the first time, or is in the middle of a batch
            return False
        return True

    def _start_next(self) -> None:
        """Starts the first query whose time has come and that there is a slot for."""
        running = next(self._due(), None)
        if running is None:
            return
        is_first = running.first_started is None
        running.begin()
        if is_first:
            self._notify(
                QueryStarted(
                    running.name,
                    running.index,
                    len(self._every),
                    running.order.query.output.sink,
                    str(running.order.trigger),
                    running.order.query.model.kind,
                    running.order.output,
                    running.order.checkpoint,
                )
            )
        else:
            self._notify(QueryResumed(running.name, running.restarts))
        try:
            if not is_first:
                running.order = self._restart(running.order)
            check_brokers(running.order.query.endpoints)
            running.query = self._write(running) if running.order.is_batch else self._stream(running, is_first)
        except FindingsError as error:
            self._give_up(running, error.findings[0])
        except (UnreachableError, *SPARK_ERRORS) as error:
            self._fail(running, error)

    def _due(self) -> Iterator[Running]:
        now = time.monotonic()
        busy = sum(running.ends and running.holds_slot for running in self._every)
        has_slot = self._limits.threads is None or busy < self._limits.threads
        for running in self._every:
            waits = running.restart_at is not None and running.restart_at <= now
            if running.result is None and (waits or (running.first_started is None and (has_slot or not running.ends))):
                yield running

    def _stream(self, running: Running, is_first: bool) -> StreamingQuery:
        if is_first:
            running.is_heard = add_listener(running.session, *self._hear(running))
        query = start_query(running.order, self._secrets)
        running.polling = None if running.is_heard else Polling(query, *self._hear(running))
        return query

    def _write(self, running: Running) -> BatchWrite:
        return BatchWrite(running.order, self._secrets, *self._hear(running)).start()

    def _hear(self, running: Running) -> tuple[Callable[[str], None], Callable[[], None]]:
        return lambda text: self._events.put((running, text)), lambda: self._events.put((running, None))

    def _take_event(self) -> None:
        """Handles one event, or what time brings."""
        for running in self._every:
            with suppress(*SPARK_ERRORS):  # the look for lost ends notices what is gone
                if running.is_active and running.polling is not None:
                    running.polling.poll()
        try:
            running, text = self._events.get(timeout=self._patience())
        except Empty:
            self._look_for_lost_ends()
            return
        if text is not None:
            uses = running.order.query.identity.sources
            progress = read_progress(running.name, text, uses, self._secrets.redact)
            running.figures = add_batch(running.figures, progress)
            if progress.rows_in != 0:
                running.active_at = time.monotonic()
            self._notify(progress)
        elif running.is_active and running.query is not None and _has_ended(running.query):
            self._end(running)  # and not what is heard late of its last run, while it runs again

    def _patience(self) -> float:
        if self._stopper.is_stopping:
            return LOOK_SECONDS
        return 0.0 if any(self._due()) else POLL_SECONDS

    def _look_for_lost_ends(self) -> None:
        for running in self._every:
            if running.is_active and running.query is not None and self._is_lost(running, running.query):
                self._end(running)

    def _is_lost(self, running: Running, query: StreamingQuery | BatchWrite) -> bool:
        """Whether the end of `query` will not be heard of: its JVM is gone, or the event is long overdue."""
        try:
            if query.isActive:
                return False
        except JVM_ERRORS:
            return True
        now = time.monotonic()
        running.inactive_since = running.inactive_since or now
        return now - running.inactive_since >= LOST_END_SECONDS

    def _end(self, running: Running) -> None:
        try:
            error: Exception | None = running.query.exception() if running.query else None
        except JVM_ERRORS as gone:
            error = gone
        if error is not None and not running.interrupted:
            self._fail(running, error)
        else:
            self._finish(running, self._status(running), None)

    def _status(self, running: Running) -> Status:
        """How a query that did not fail has ended. A look that took longer than the planning of a batch may have marked
        it in the wrong moment, where it interrupts itself: the checkpoint tells.
        """
        query = running.query if isinstance(running.query, StreamingQuery) else None
        if running.was_marked and query and not running.interrupted and unfinished_batch(query) is not None:
            running.interrupted = True
            self._stopper.notify_interrupted(running, "it had just started a batch when it was stopped")
        if running.interrupted:
            return Status.INTERRUPTED
        return Status.STOPPED if running.stopped or running.was_marked else Status.SUCCESS

    def _fail(self, running: Running, error: Exception) -> None:
        """Has a query that failed started again, or reports it where that would not help."""
        finding, retries = failure_finding(running, error, self._secrets), running.retries
        if retries.begins_anew(time.monotonic() - running.started):
            running.failures = 0
        running.failures += 1
        lasts = finding.code == "torn-checkpoint" or is_jvm_gone(error) or fails_again(error)
        if self._is_stopping or running.failures > retries.attempts or lasts:
            self._give_up(running, finding)
            return
        delay = retries.delay_after(running.failures, random.random())  # noqa: S311 - nothing to guess
        running.failure, running.restart_at = finding, time.monotonic() + delay
        self._notify(QueryRestarting(running.name, running.failures, retries.attempts, delay, finding))

    def _give_up(self, running: Running, finding: Finding) -> None:
        self._finish(running, Status.ERROR, finding)
        if self._limits.fail_fast and self._stop_reason is None:
            self._stop_reason = f"{running.name} has failed"

    def _finish(self, running: Running, status: Status, finding: Finding | None) -> None:
        self._notify(running.end(len(self._every), status, finding))

    def _stop(self) -> None:
        """Takes every query one look further towards its end; those that do not run end at once."""
        if not self._stopper.is_stopping:
            self._stopper.begin()
            self._notify_stopping()
        for running in self._every:
            if running.result is not None or running.interrupted:
                continue
            if running.restart_at is not None:
                self._finish(running, Status.ERROR, running.failure)
            elif running.query is None:
                self._finish(running, Status.SKIPPED, None)
            else:
                self._stop_one(running, running.query)

    def _stop_one(self, running: Running, query: StreamingQuery | BatchWrite) -> None:
        try:
            self._stopper.look(running, query, now=self._asked > 1)
        except SPARK_ERRORS as error:
            # the look for lost ends notices a JVM that is gone; else it did not stop within Spark's stopTimeout
            if not is_jvm_gone(error):
                self._finish(running, Status.ERROR, failure_finding(running, error, self._secrets))

    def _notify_stopping(self) -> None:
        names = [running.name for running in self._every if running.is_active]
        if names:
            rest = "stops after its current batch" if len(names) == 1 else "stop after their current batches"
            self._notify(
                Notice(f"stopping, because {self._stop_reason or 'a stop was requested'}: {', '.join(names)} {rest}")
            )


def _has_ended(query: StreamingQuery | BatchWrite) -> bool:
    try:
        return not query.isActive
    except JVM_ERRORS:
        return True
