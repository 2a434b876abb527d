"""The mutable state of one query during a run, from its first start to its end, and how its progress is polled without
a listener.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding
from sqlstream.project.configuration.trigger import OUTLASTS, Retries
from sqlstream.spark.jvm.connect import progress_json
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, Phase
from sqlstream.spark.queries.batch_write import BatchWrite
from sqlstream.spark.queries.start import StartOrder
from sqlstream.spark.queries.watermarks import KeptWatermarks
from sqlstream.state.runs.events import QueryResult, Status
from sqlstream.state.runs.progress import Figures

BatchKey = tuple[str, int, str]
"""The query's run id, the batch number, and the time of the batch's trigger."""

LOST_END_SECONDS = 5.0
"""Time to wait for the end event of an inactive query. Spark drops events when it is overloaded."""

REMOTE_POLL_SECONDS = 1.0
"""The interval of requests about each query on a Spark Connect server."""


IDLE_STEPS = frozenset({"getOffset", "latestOffset", "triggerExecution"})
"""The steps of a trigger that has found no data. Spark keeps its progress as that of a batch."""


class Polling:
    """Calls `on_progress` with each batch's progress as JSON, and `on_end` once after the last batch, like a listener.

    Spark keeps the last 100 batches of a query, so calling `poll` several times a second misses none. `is_lost`: Spark
    could not say how the query is.
    """

    def __init__(self, query: StreamingQuery, on_progress: Callable[[str], None], on_end: Callable[[], None]) -> None:
        self._query = query
        self._on_progress = on_progress
        self._on_end = on_end
        self._seen: BatchKey | None = None
        self._has_ended = False
        self._interval = 0.0 if isinstance(query, StreamingQuery) else REMOTE_POLL_SECONDS
        self._next_at = 0.0
        self.is_lost = False

    def poll(self) -> None:
        """Reports new batches and the end."""
        if self._has_ended or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + self._interval
        try:
            is_active = self._query.isActive  # first, so that the progress below includes the last batch
            new = list(self._new())
            self.is_lost = False
        except SPARK_ERRORS:
            self.is_lost = True
            return
        for progress in new:
            self._on_progress(progress.json if self._interval == 0.0 else progress_json(progress))
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
            if not progress.durationMs or not IDLE_STEPS.issuperset(progress.durationMs):
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


@dataclass
class QueryRun:
    """A query and its state. `index` is its number in the run, from 1.

    `first_started` is the time of the first start, `started` of the last start, and `restart_at` of the next one after
    `failure`. `active_at` is the last time that the query had work. All are times of the monotonic clock. `has_waited`
    is set as soon as the query waits for its next trigger, after it has checked its input once. `waits` is whether a
    query without a batch waits for data (None: unknown), looked up at `waits_checked_at`.

    A listener in the session `listened` reports the query, or else `polling` does. `can_be_marked` is whether Spark can
    mark the query to end after its batch (None: unknown); `marked_in` is the phase in which it was marked. Without a
    mark, `last_batch` watches the batch that ran when the stop was requested. `checked_at` is when the stored outputs
    that the query reads were looked for. `cannot_stop` is set if Spark could not stop a query whose lock is lost.
    `awaited` is what runs in a thread before the query goes on, and what the runner calls with its result. `job_groups`
    are those of its starts whose tasks are not all counted yet, the newest last.
    """

    order: StartOrder
    index: int
    query: StreamingQuery | BatchWrite | None = None
    first_started: float | None = None
    started: float = 0.0
    active_at: float = 0.0
    figures: Figures = field(default_factory=Figures)
    failures: int = 0
    restarts: int = 0
    restart_at: float | None = None
    failure: Finding | None = None
    inactive_since: float | None = None
    interrupted: bool = False
    stopped: bool = False
    was_marked: bool = False
    marked_in: Phase | None = None
    waiting_checks: int = 0
    checked_at: float | None = None
    has_waited: bool = False
    waits: bool | None = None
    waits_checked_at: float = 0.0
    cannot_stop: bool = False
    listened: SparkSession | None = None
    polling: Polling | None = None
    can_be_marked: bool | None = None
    last_batch: LastBatch | None = None
    watermarks: KeptWatermarks | None = None
    is_ahead: bool = False
    awaited: tuple[Future[Any], Callable[[Future[Any]], None]] | None = None
    job_groups: list[str] = field(default_factory=list)
    result: QueryResult | None = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.order.query.model.name

    @property
    def stream(self) -> StreamingQuery | None:
        """The streaming query, None for a batch model or before the start."""
        return None if isinstance(self.query, BatchWrite) else self.query

    @property
    def session(self) -> SparkSession:
        """The query's session."""
        return self.order.query.frame.sparkSession

    @property
    def retries(self) -> Retries:
        """When to restart the query after a failure: never if a batch model would append its rows twice."""
        appends = self.order.is_batch and self.order.query.unrestartable
        return Retries(0) if appends else self.order.query.model.config.retries

    def attempts_after(self, *, lost_connection: bool) -> int:
        """Returns how often the query restarts: more often while a server is down, if it never ends and its model does
        not set `retries`.
        """
        model = self.order.query.model
        outlasts = lost_connection and not self.ends and "retries" not in model.config_locations
        return OUTLASTS if outlasts else self.retries.attempts

    @property
    def ends(self) -> bool:
        """Whether the query ends by itself."""
        return self.order.is_batch or self.order.trigger.facts.ends

    @property
    def is_active(self) -> bool:
        """Whether the query runs, according to the events so far."""
        is_waiting = self.restart_at is not None or self.awaited is not None
        return self.query is not None and self.result is None and not is_waiting

    @property
    def has_ended(self) -> bool:
        """Whether Spark has ended the query."""
        try:
            return self.query is not None and not self.query.isActive
        except SPARK_ERRORS:
            return True

    def misses_its_end(self) -> bool:
        """Returns whether the end event of the query will not arrive: its JVM is gone, or the event is overdue."""
        if self.polling is not None and not self.polling.is_lost:
            return False
        try:
            if self.query is None or self.query.isActive:
                return False
        except SPARK_ERRORS:
            return True
        now = time.monotonic()
        self.inactive_since = self.inactive_since or now
        return now - self.inactive_since >= LOST_END_SECONDS

    @property
    def holds_slot(self) -> bool:
        """Whether the query has started and not ended; a query that waits for its restart keeps its slot."""
        return self.first_started is not None and self.result is None

    def begin(self) -> None:
        """Records a start, the first one or a restart."""
        if self.restart_at is not None:
            self.restarts += 1
        self.started = self.active_at = time.monotonic()
        self.first_started = self.first_started or self.started
        self.query = self.restart_at = self.failure = self.inactive_since = self.marked_in = None
        self.waiting_checks = 0
        self.has_waited = False
        self.waits = None

    def end(
        self, total_queries: int, status: Status, finding: Finding | None, reason: str | None = None
    ) -> QueryResult:
        """Records the end, and returns the result."""
        model = self.order.query.model
        self.result = QueryResult(
            model=model.name,
            unique_id=model.unique_id,
            index=self.index,
            total=total_queries,
            status=status,
            batches=self.figures.batches,
            rows_in=self.figures.sums["rows_in"],
            rows_out=self.figures.sums["rows_out"],
            seconds=0.0 if self.first_started is None else time.monotonic() - self.first_started,
            output=self.order.output,
            checkpoint=self.order.checkpoint,
            finding=finding,
            restarts=self.restarts,
            kind=model.kind,
            late_rows=self.figures.sums["late_rows"] or 0,
            dropped_records=self.figures.sums["dropped_records"] or 0,
            violations=self.figures.sums["violations"] or 0,
            reason=reason,
        )
        return self.result
