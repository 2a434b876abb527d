"""Supervises the queries of a run: starts them, collects their progress, restarts failed ones, and stops all."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from queue import Empty, Queue
from typing import TypeVar

from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.app.plan.ledgers import known_ids, write_before_start
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.session.target_storage import storage_location
from sqlstream.app.stored.stored_outputs import is_written, reads_static_outputs
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.spark.jvm.core_time import CoreTimes
from sqlstream.spark.jvm.errors import bug_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, failure_of, has_application_ended, is_jvm_gone
from sqlstream.spark.jvm.internals import add_listener, current_watermark, unfinished_batch
from sqlstream.spark.queries.batch_write import BatchWrite
from sqlstream.spark.queries.failures import ahead_finding, fails_again, failure_finding, is_connection_lost
from sqlstream.spark.queries.occupied_cores import OccupiedCores
from sqlstream.spark.queries.prepare import PreparedQuery
from sqlstream.spark.queries.query_run import Polling, QueryRun
from sqlstream.spark.queries.start import StartOrder, start_query
from sqlstream.spark.queries.stopper import Stopper
from sqlstream.spark.queries.watermarks import kept_watermarks
from sqlstream.spark.reading.endpoints import UnreachableError, check_brokers
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.locks import LockLostError
from sqlstream.spark.storage.query_locks import query_lock_lost
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.state.layout import ledger_path
from sqlstream.state.refusals import input_replaced, replaced_inputs
from sqlstream.state.runs.events import (
    Notice,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QueryStarted,
    QueryWaiting,
    RunEvent,
    Status,
)
from sqlstream.state.runs.limits import RunLimits
from sqlstream.state.runs.progress import BatchProgress, add_batch, epoch_seconds, read_progress

T = TypeVar("T")

GRACE_SECONDS = 60.0
"""Time for running batches after a stop request, before they are interrupted."""
POLL_SECONDS = 0.1
"""Time to wait for an event before the next check for a stop request: a signal handler cannot wake the queue."""
STOPPING_POLL_SECONDS = 0.01
"""The interval of checks of a stopping query: shorter than the planning of any batch."""

CHECK_SECONDS = 0.5
"""The time between two checks whether an output exists, whose query runs until it is stopped."""

LOOK_SECONDS = 5.0
"""The time between two checks whether a query that has had no batch waits for data."""

INITIALIZING = "Initializing"
"""The start of Spark's status message before a query first checks its input (StreamExecution of Spark 4.3)."""

MARGIN_SECONDS = 0.5
"""The longest time until a trigger begins. Spark starts triggers at multiples of their interval since 1970
(ProcessingTimeExecutor).
"""


class RunOrders:
    """The orders to start and restart the queries of a run, which are `ready`."""

    def __init__(self, ready: Sequence[CheckedQuery], checks: CheckContext) -> None:
        self._checks = checks
        self._ready = {item.query.model.name: item for item in ready}

    def first(self) -> list[StartOrder]:
        """Returns the order of each query, as it was checked."""
        return [item.order(self._checks) for item in self._ready.values()]

    def query(self, name: str) -> PreparedQuery:
        """Returns the query of the model `name` as it started last."""
        return self._ready[name].query

    def following(self, order: StartOrder) -> StartOrder | None:
        """Returns the order of a query that reads stored outputs of this run, None if they do not exist yet.

        Raises: FindingsError.
        """
        model = order.query.model
        compiled = self._checks.outputs.resolve([model.unique_id])
        if not all(map(is_written, compiled.tables_of(model.unique_id))):
            return None
        self._ready[model.name] = ready = self._ready[model.name].prepared_over(compiled, self._checks)
        return ready.order(self._checks)

    def renewed(self, order: StartOrder) -> StartOrder:
        """Returns the order to restart a query that failed, or to start one that is not checked yet.

        Raises: FindingsError if the checkpoint or an output is damaged; DatabaseError, Spark's errors.
        """
        name = order.query.model.name
        ready = self._ready[name]
        if reads_static_outputs(ready.query.compiled, ready.query.model):
            compiled = self._checks.outputs.resolve([ready.query.model.unique_id])  # files may have been replaced
            self._ready[name] = ready = ready.prepared_over(compiled, self._checks)
            order = ready.order(self._checks)
        if order.is_fresh:
            self._ready[name] = self._next_version(ready)
            return self._ready[name].order(self._checks)
        if not order.is_batch:
            ready.check_again(self._checks)
            self._check_inputs(ready)
        return order

    def _check_inputs(self, ready: CheckedQuery) -> None:
        """Checks that no topic or table was replaced while the query did not run. Raises: FindingsError."""
        replaced = replaced_inputs(known_ids(ready), ready.query.ask_input_ids())
        if replaced:
            model, path = ready.query.model, ledger_path(ready.root, ready.plan.version)
            place = Place(model.file.location)
            raise FindingsError([input_replaced(model.name, each, path, place) for each in replaced])

    def _next_version(self, ready: CheckedQuery) -> CheckedQuery:
        """Returns the query with a new checkpoint, and writes its ledger."""
        fresh = replace(ready, plan=replace(ready.plan, version=ready.plan.version + 1))
        with storage_problems(
            ready.root, storage_location(self._checks.loaded, ready.query.model), self._checks.secrets
        ):
            fresh.lock_version(self._checks)
            write_before_start(fresh, self._checks)
        return fresh


class Runner:
    """Runs the queries of one session in parallel. `notify` gets every event, in the thread that calls `run`.

    A signal handler can call `request_stop`: once to stop after the running batches, twice to stop now.
    """

    def __init__(
        self,
        secrets: Secrets,
        notify: Callable[[RunEvent], None],
        limits: RunLimits,
        orders: RunOrders,
        grace_seconds: float = GRACE_SECONDS,
    ) -> None:
        self._secrets = secrets
        self._notify = notify
        self._limits = limits
        self._orders = orders
        self._stopper = Stopper(notify, grace_seconds)
        self._cores = OccupiedCores(notify)
        self._core_times = CoreTimes()
        self._events: Queue[tuple[QueryRun, str | None]] = Queue()  # SimpleQueue.get can hang after a signal
        self._runs: list[QueryRun] = []
        self._stop_requests = 0
        self._stop_reason: str | None = None

    def request_stop(self) -> None:
        """Requests the end of the run; any thread or signal handler can call it at any time."""
        self._stop_requests += 1

    @property
    def _is_stopping(self) -> bool:
        return self._stop_requests > 0 or self._stop_reason is not None

    def run(self) -> Iterator[None]:
        """Starts all queries, and supervises their queries until the last one has ended. Then `results` is complete.
        Yields in each turn, at least every second unless a step takes longer.

        A failed query restarts as configured in its model, and does not stop the others; neither does a bug of
        sqlstream in the handling of one query. Queries that have not started before a stop request are skipped.
        """
        self._runs = [QueryRun(order, index) for index, order in enumerate(self._orders.first(), start=1)]
        began = time.monotonic()
        try:
            while any(run.result is None for run in self._runs):
                self._each(self._end_lost)
                if self._is_stopping:
                    self._stop()
                else:
                    self._start_next()
                    self._each(partial(self._cores.check, runs=self._runs))
                    self._stop_reason = self._stop_reason or self._reason_to_stop(time.monotonic() - began)
                self._each(_poll)
                self._each(self._look_for_input)
                self._handle_event()
                yield
        finally:
            self._core_times.close()

    @property
    def results(self) -> tuple[QueryResult, ...]:
        """The results of the queries that have ended, in the order in which they were selected."""
        return tuple(run.result for run in self._runs if run.result is not None)

    def _each(self, step: Callable[[QueryRun], T]) -> list[tuple[QueryRun, T]]:
        """Calls `step` for each query that has not ended, and returns its results. A bug in it ends only its query."""
        found: list[tuple[QueryRun, T]] = []
        for run in self._runs:
            if run.result is None:
                with self._only_failing(run):
                    found.append((run, step(run)))
        return found

    def _reason_to_stop(self, seconds: float) -> str | None:
        """Returns why the run, which has taken `seconds`, must stop. None if it continues."""
        idle = self._limits.until_idle_seconds
        found = [] if idle is None else self._each(partial(has_been_idle, seconds=idle))
        return stop_reason(self._limits, seconds, [is_idle for _, is_idle in found if is_idle is not None])

    def _start_next(self) -> None:
        """Starts the first query that is due, if any."""
        run = self._next_due()
        if run is None:
            return
        with self._only_failing(run):
            self._start(run)

    def _start(self, run: QueryRun) -> None:
        """Starts a query, as soon as its brokers have answered."""
        is_first = run.first_started is None
        if is_first and run.order.after and not self._has_inputs(run):
            return
        run.begin()
        self._notify(self._started(run) if is_first else QueryResumed(run.name, run.restarts))
        if run.order.query.endpoints:
            asking = partial(check_brokers, run.order.query.endpoints)
            self._in_background(run, asking, lambda asked: self._start_query(run, is_first, asked))
        else:
            self._start_query(run, is_first)

    def _start_query(self, run: QueryRun, is_first: bool, asked: Future[None] | None = None) -> None:
        try:
            if asked is not None:
                asked.result()
            run.order.lock.confirm()
            if not is_first or run.order.is_unchecked:
                run.order = self._orders.renewed(run.order)
            self._core_times.listen(run.session)
            if run.order.is_batch:
                run.query = BatchWrite(run.order, self._secrets, *self._callbacks(run)).start()
                run.job_groups.append(run.query.job_group)
            else:
                run.query = self._start_stream(run)
                run.job_groups.append(str(run.query.runId))
            stop_when_lost(run, run.query)
        except (FindingsError, LockLostError, UnreachableError, DatabaseError, *SPARK_ERRORS) as error:
            self._handle_failure(run, error)

    def _in_background(self, run: QueryRun, work: Callable[[], T], then: Callable[[Future[T]], None]) -> None:
        """Calls `work`, which may wait for a server, in a thread, and then `then` in this one: other queries go on."""
        pool = ThreadPoolExecutor(1, run.name)
        future = pool.submit(copy_context().run, work)
        run.awaited = future, then
        # wakes `_handle_event`, which calls `then` in the thread of the runner
        future.add_done_callback(lambda _: self._events.put((run, None)))
        pool.shutdown(wait=False)

    def _look_for_input(self, run: QueryRun) -> None:
        """Notifies when a query that has had no batch waits for data, and when its first batch runs."""
        now = time.monotonic()
        if run.figures.batches or now - max(run.waits_checked_at, run.started) < LOOK_SECONDS:
            return
        run.waits_checked_at = now
        waits = waits_for_input(run)
        if waits is not None and waits is not run.waits:
            run.waits = waits
            self._notify(QueryWaiting(run.name, waits))

    def _end_lost(self, run: QueryRun) -> None:
        """Ends a query whose lock is lost."""
        finding = lost_lock(run, self._secrets)
        if finding is not None:
            self._give_up(run, finding)

    def _has_inputs(self, run: QueryRun) -> bool:
        """Returns whether the stored outputs that `run` reads exist. Ends the run if they will not."""
        run.checked_at = time.monotonic()
        try:
            reason = reason_to_skip(run, self._runs, has_inputs=True)
            order = self._orders.following(run.order) if reason is None else None
        except FindingsError as error:
            self._give_up(run, error.findings[0])
            return False
        reason = reason or reason_to_skip(run, self._runs, has_inputs=order is not None)
        if reason is not None:
            self._notify(Notice(f"{run.name} is skipped: {reason}"))
            self._finish(run, Status.SKIPPED, None, reason)
        run.order = order or run.order
        return order is not None

    def _next_due(self) -> QueryRun | None:
        """Returns the first query whose restart is due, or that has not started and for which there is a slot."""
        # queries that never end take no slot: they would not give it back
        busy = sum(holds for _, holds in self._each(lambda run: run.ends and run.holds_slot))
        has_slot = self._limits.threads is None or busy < self._limits.threads
        due = self._each(partial(self._is_due, has_slot=has_slot))
        return next((run for run, is_due in due if is_due), None)

    def _is_due(self, run: QueryRun, *, has_slot: bool) -> bool:
        if run.restart_at is not None:
            return run.restart_at <= time.monotonic()
        return run.first_started is None and (has_slot or not run.ends) and not must_wait(run, self._runs)

    def _started(self, run: QueryRun) -> QueryStarted:
        return QueryStarted(
            run.name,
            run.index,
            len(self._runs),
            ", ".join(output.sink for output in run.order.query.model.outputs),
            str(run.order.trigger),
            run.order.query.model.kind,
            run.order.output,
            run.order.checkpoint,
        )

    def _start_stream(self, run: QueryRun) -> StreamingQuery:
        # a query that was prepared again has another session
        if run.listened is not run.session:
            run.listened = run.session if add_listener(run.session, *self._callbacks(run)) else None
        query = start_query(run.order, self._secrets)
        run.watermarks = kept_watermarks(run.order, query)
        if run.watermarks is not None:
            run.watermarks.restore()
        run.polling = None if run.listened else Polling(query, *self._callbacks(run))
        return query

    def _callbacks(self, run: QueryRun) -> tuple[Callable[[str], None], Callable[[], None]]:
        return lambda text: self._events.put((run, text)), lambda: self._events.put((run, None))

    def _handle_event(self) -> None:
        """Handles one event, or lost ends if there is no event."""
        try:
            run, text = self._events.get(timeout=self._event_timeout())
        except Empty:
            self._each(self._handle_lost_end)
            return
        with self._only_failing(run):
            if text is not None:
                self._handle_progress(run, text)
            elif run.result is None and run.awaited is not None and run.awaited[0].done():
                (future, then), run.awaited = run.awaited, None
                then(future)
            elif run.is_active and run.has_ended:
                self._handle_end(run)  # not a late event of its last start, while it runs again

    def _event_timeout(self) -> float:
        if self._stopper.is_stopping:
            return STOPPING_POLL_SECONDS
        return POLL_SECONDS if self._next_due() is None else 0.0

    def _handle_progress(self, run: QueryRun, text: str) -> None:
        progress = read_progress(run.name, text, run.order.query.identity.sources, self._secrets.redact)
        progress = self._with_core_time(run, progress)
        run.figures = add_batch(run.figures, progress)
        if progress.rows_in != 0:  # None is an unknown number
            run.active_at = time.monotonic()
        if run.watermarks is not None:
            run.watermarks.keep(progress.batch_id)
            problem = run.watermarks.take_problem()
            if problem is not None:
                self._notify(Notice(f"{run.name}: {self._secrets.redact(problem)}"))
        ahead = None if run.is_ahead else ahead_finding(run, epoch_seconds(progress.watermark))
        if ahead is not None:
            run.is_ahead = True
            self._notify(Notice(f"{ahead.message}; {ahead.why}"))
        self._notify(progress)

    def _with_core_time(self, run: QueryRun, progress: BatchProgress) -> BatchProgress:
        """Adds what the tasks of a query have taken since its previous batch, including those of a batch that failed.
        It is unknown if tasks last as long as the query.
        """
        is_known = run.order.is_batch or run.order.trigger.facts.has_micro_batches
        taken = self._core_times.take(run.job_groups) if is_known else None
        if taken is None or taken.is_complete:
            del run.job_groups[:-1]
        if taken is None:
            return progress
        return replace(
            progress, core_ms=taken.core_ms, tasks=taken.tasks, cores=taken.cores, longest_task_ms=taken.longest_ms
        )

    def _handle_lost_end(self, run: QueryRun) -> None:
        if run.is_active and run.misses_its_end():
            self._handle_end(run)

    def _handle_end(self, run: QueryRun) -> None:
        if run.order.lock.lost is not None:
            return  # see `_end_lost`
        try:
            error = run.query.exception() if isinstance(run.query, BatchWrite) else None
            error = failure_of(run.stream) if run.stream is not None else error
        except SPARK_ERRORS as lost:
            error = lost
        if run.watermarks is not None and run.figures.last is not None:
            run.watermarks.keep(run.figures.last.batch_id, at_end=True)
        if error is not None and not run.interrupted:
            self._handle_failure(run, error)
        else:
            finding = self._finding_at_end(run)
            self._finish(run, self._status(run) if finding is None else Status.ERROR, finding)

    def _finding_at_end(self, run: QueryRun) -> Finding | None:
        """Returns why a query that has ended without failure cannot go on like this."""
        if run.figures.last is None or run.stream is None:
            return None
        next_watermark = current_watermark(run.stream)  # that of the last batch is older
        known = epoch_seconds(run.figures.last.watermark)
        return ahead_finding(run, known if next_watermark is None else next_watermark / 1000)

    def _status(self, run: QueryRun) -> Status:
        """Returns the status of a query that ended without failure.

        If the stopper was too slow, it can mark the query while that plans a batch, which interrupts the query. The
        checkpoint shows this.
        """
        stream = run.stream
        if run.was_marked and stream and not run.interrupted and unfinished_batch(stream) is not None:
            run.interrupted = True
            self._stopper.notify_interrupted(run, "it had just started a batch when it was stopped")
        if run.interrupted:
            return Status.INTERRUPTED
        return Status.STOPPED if run.stopped or run.was_marked else Status.SUCCESS

    def _handle_failure(self, run: QueryRun, error: Exception) -> None:
        """Schedules the restart of a failed query, or reports the failure if a restart cannot help."""
        run.order.lock.renew()  # another run that has taken over causes many kinds of errors
        if run.order.lock.lost is not None:
            return  # see `_end_lost`
        if isinstance(error, FindingsError):
            self._give_up(run, error.findings[0])
            return
        seconds = time.monotonic() - run.started
        finding = partial(failure_finding, run, error, self._secrets)
        self._in_background(run, finding, lambda found: self._restart_or_give_up(run, error, seconds, found))

    def _restart_or_give_up(self, run: QueryRun, error: Exception, seconds: float, found: Future[Finding]) -> None:
        """Handles a query that has failed with `error` after `seconds`."""
        with self._only_failing(run, error):
            self._schedule(run, error, seconds, found.result())

    def _schedule(self, run: QueryRun, error: Exception, seconds: float, finding: Finding) -> None:
        retries = run.retries
        if retries.resets_count_after(seconds):
            run.failures = 0
        run.failures += 1
        is_lost = is_jvm_gone(error) or has_application_ended(run.session)
        is_permanent = finding.code == "torn-checkpoint" or is_lost or fails_again(error)
        attempts = run.attempts_after(lost_connection=is_connection_lost(error))
        if self._is_stopping or run.failures > attempts or is_permanent:
            self._give_up(run, finding)
            return
        delay = retries.delay_after(run.failures, random.random())  # noqa: S311 - not for security
        run.failure, run.restart_at = finding, time.monotonic() + delay
        self._notify(QueryRestarting(run.name, run.failures, attempts, delay, finding))

    def _give_up(self, run: QueryRun, finding: Finding) -> None:
        self._finish(run, Status.ERROR, finding)
        if self._limits.fail_fast and self._stop_reason is None:
            self._stop_reason = f"{run.name} has failed"

    def _finish(self, run: QueryRun, status: Status, finding: Finding | None, reason: str | None = None) -> None:
        result = run.end(len(self._runs), status, finding, reason)
        run.order.query.release()
        self._notify(result)

    @contextmanager
    def _only_failing(self, run: QueryRun, failure: Exception | None = None) -> Iterator[None]:
        """Ends only `run` if the body, which handles it or its `failure`, has a bug: other queries must not end."""
        try:
            yield
        except BrokenPipeError:
            raise  # the reader of the output has ended, as `| head` does
        except Exception as bug:
            what, location = f"the query of `{run.name}`", run.order.query.model.file.location
            finding = bug_finding(bug, failure, what, location, self._secrets)
            try:
                if run.query is not None:
                    run.query.stop()
                if run.result is None:
                    self._give_up(run, finding)
            except Exception as another:  # the end is recorded in `run` even if nobody could be notified of it
                bug_finding(another, bug, what, location, self._secrets)
                run.result = run.result or run.end(len(self._runs), Status.ERROR, finding)

    def _stop(self) -> None:
        """Takes the next step to stop each query; ends queries that do not run at once."""
        if not self._stopper.is_stopping:
            self._stopper.begin()
            self._notify_stopping()
        self._each(self._stop_one)

    def _stop_one(self, run: QueryRun) -> None:
        if run.interrupted or run.awaited is not None:
            return
        if run.restart_at is not None:
            self._finish(run, Status.ERROR, run.failure)
            return
        if run.query is None:
            self._finish(run, Status.SKIPPED, None, self._stop_reason or "a stop was requested")
            return
        try:
            self._stopper.step(run, run.query, now=self._stop_requests > 1)
        except SPARK_ERRORS as error:
            # `_handle_lost_end` finds a JVM that is gone; other errors mean that Spark's stopTimeout has passed
            if not is_jvm_gone(error):
                self._finish(run, Status.ERROR, failure_finding(run, error, self._secrets))

    def _notify_stopping(self) -> None:
        names = [run.name for run in self._runs if run.is_active]
        if names:
            rest = "stops after its current batch" if len(names) == 1 else "stop after their current batches"
            reason = self._stop_reason or "a stop was requested"
            self._notify(Notice(f"stopping, because {reason}: {', '.join(names)} {rest}"))


def waits_for_input(run: QueryRun) -> bool | None:
    """Returns whether a query that has had no batch waits for data; None if that is unknown, because it starts, lists
    its input, or has had a batch.
    """
    if run.stream is None or run.order.trigger.facts.has_epochs or run.figures.batches or not run.is_active:
        return None
    try:
        status = run.stream.status
    except SPARK_ERRORS:  # the query has ended
        return None
    if status["message"].startswith(INITIALIZING) or status["isTriggerActive"] != status["isDataAvailable"]:
        return None
    return not status["isTriggerActive"]


def _poll(run: QueryRun) -> None:
    if run.is_active and run.polling is not None:
        run.polling.poll()


def must_wait(run: QueryRun, runs: Sequence[QueryRun]) -> bool:
    """Returns whether `run` waits: for the end of a query whose output it reads, or for its start if it does not end by
    itself, or for the next check whether that output exists.
    """
    if run.checked_at is not None and time.monotonic() - run.checked_at < CHECK_SECONDS:
        return True
    return any(_is_unready(writer) for writer in writers_of(run, runs))


def _is_unready(writer: QueryRun) -> bool:
    return writer.result is None and (writer.ends or writer.query is None)


def writers_of(run: QueryRun, runs: Sequence[QueryRun]) -> list[QueryRun]:
    """Returns the queries of the same run whose stored outputs `run` reads."""
    # most read none, and a run asks for each query that waits for its start
    return [each for each in runs if each.name in run.order.after] if run.order.after else []


def reason_to_skip(run: QueryRun, runs: Sequence[QueryRun], *, has_inputs: bool) -> str | None:
    """Returns why `run` cannot start in this run, None if it can, now or later. `has_inputs`: its inputs exist."""
    writers = writers_of(run, runs)
    failed = [writer.name for writer in writers if writer.result and writer.result.status in _FAILED]
    if failed:
        return f"{failed[0]}, whose stored output it reads, failed or was skipped"
    if not has_inputs and all(writer.result for writer in writers):
        return f"the stored output of {', '.join(writer.name for writer in writers)} does not exist yet"
    return None


_FAILED = (Status.ERROR, Status.SKIPPED)


def stop_when_lost(run: QueryRun, query: StreamingQuery | BatchWrite) -> None:
    """Stops `query` at once when the lock of `run` is lost, in the thread that finds out."""

    def stop() -> None:
        try:
            query.stop()
        except SPARK_ERRORS:  # Spark's stopTimeout has passed, or the JVM is gone
            run.cannot_stop = True

    run.order.lock.when_lost(stop)


def lost_lock(run: QueryRun, secrets: Secrets) -> Finding | None:
    """Returns the finding for a query that has ended, or does not run, and whose lock is lost. Otherwise None."""
    why = run.order.lock.lost
    if why is None or (run.is_active and not run.has_ended and not run.cannot_stop):
        return None
    model = run.order.query.model
    return query_lock_lost(model.name, why, model.file.location, secrets)


def stop_reason(limits: RunLimits, seconds: float, idle: Sequence[bool]) -> str | None:
    """Returns why a run that has taken `seconds` must stop, None if it continues. `idle` are its unfinished queries."""
    if limits.for_seconds is not None and seconds >= limits.for_seconds:
        return "the time limit was reached"
    if idle and all(idle):
        return f"no query had anything to read for {limits.until_idle_seconds:g} s"
    return None


def has_been_idle(run: QueryRun, seconds: float) -> bool | None:
    """Returns whether a query has read nothing for `seconds`, and a trigger after that has found nothing to read; None
    if it waits for the stored outputs of others.

    New data waits for the next trigger, so time alone does not show that there is none. Between triggers,
    `isDataAvailable` says whether the latest one found data.
    """
    if run.order.after and run.first_started is None:
        return None
    if run.order.trigger.facts.has_epochs:
        return False  # Spark does not report what such a query reads
    if not run.is_active or run.query is None or time.monotonic() - run.active_at < seconds:
        return False
    try:
        status = run.query.status
    except SPARK_ERRORS:  # the query has ended
        return False
    is_starting, is_triggered = status["message"].startswith(INITIALIZING), status["isTriggerActive"]
    run.has_waited |= not is_starting and not is_triggered
    if is_starting or (is_triggered and (status["isDataAvailable"] or not run.has_waited)):
        run.active_at = time.monotonic()  # it starts, checks its input for the first time, or runs a batch
        return False
    if status["isDataAvailable"] or _has_lag(run):
        return False
    interval = run.order.trigger.period_seconds
    if interval is None:
        return True
    # the time since the last trigger: Spark starts triggers at multiples of the interval since 1970
    since = time.time() % interval if interval else MARGIN_SECONDS
    found_nothing = not is_triggered and since >= min(MARGIN_SECONDS, interval / 4)
    return found_nothing and time.monotonic() - since >= run.active_at + seconds


def _has_lag(run: QueryRun) -> bool:
    """Returns whether the last batch left records of Kafka, which a source may hold back until there are more."""
    last = run.figures.last
    return last is not None and any(count for source in last.sources for count in source.lag.values())
