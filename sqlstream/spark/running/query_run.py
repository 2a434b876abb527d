"""The one mutable record of a run: a query, from its first start to its end."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from sqlstream.errors import Finding
from sqlstream.project.configuration.retries import Retries
from sqlstream.spark.jvm.gateway import Phase
from sqlstream.spark.running.polling import LastBatch, Polling
from sqlstream.spark.running.start import StartOrder
from sqlstream.spark.writing.batch import BatchWrite
from sqlstream.state.runs.events import QueryResult, Status
from sqlstream.state.runs.figures import Figures


@dataclass
class Running:
    """A query of a run and what has been seen of it. `index` is its number among them, from 1.

    `first_started` is when it was started, `started` when it was started last, `restart_at` when it is to be started
    again, after the failure that `failure` tells of; `active_at` is when it last had something to do. All are times of
    the monotonic clock. `has_looked` says that it was seen to wait, after it had looked for something to read.

    `is_heard` says that a listener tells of it; otherwise `polling` asks. `can_be_marked` says whether Spark has a mark
    that ends it after its batch, None before anybody has looked; otherwise `last_batch` watches the batch that it was
    in when it was asked to stop.
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
    marked: Phase | None = None
    idle_looks: int = 0
    has_looked: bool = False
    is_heard: bool = False
    polling: Polling | None = None
    can_be_marked: bool | None = None
    last_batch: LastBatch | None = None
    result: QueryResult | None = None

    @property
    def name(self) -> str:
        """The name of the model."""
        return self.order.query.model.name

    @property
    def session(self) -> SparkSession:
        """The query's own session."""
        return self.order.query.frame.sparkSession

    @property
    def retries(self) -> Retries:
        """How often it is started again: never where a batch would add rows twice."""
        adds = self.order.is_batch and self.order.query.unrestartable
        return Retries(0) if adds else self.order.query.model.config.retries

    @property
    def ends(self) -> bool:
        """Whether it ends by itself."""
        return self.order.is_batch or self.order.trigger.ends

    @property
    def is_active(self) -> bool:
        """Whether it runs, as far as has been heard."""
        return self.query is not None and self.result is None and self.restart_at is None

    @property
    def holds_slot(self) -> bool:
        """Whether it has begun and will go on: a query that waits for its restart keeps its place."""
        return self.first_started is not None and self.result is None

    def begin(self) -> None:
        """Notes that it is started, for the first time or again."""
        if self.restart_at is not None:
            self.restarts += 1
        self.started = self.active_at = time.monotonic()
        self.first_started = self.first_started or self.started
        self.query = self.restart_at = self.failure = self.inactive_since = self.marked = None
        self.idle_looks = 0
        self.has_looked = False

    def end(self, total_queries: int, status: Status, finding: Finding | None) -> QueryResult:
        """Notes how it ended, and returns that."""
        model = self.order.query.model
        self.result = QueryResult(
            model=model.name,
            unique_id=model.unique_id,
            index=self.index,
            total=total_queries,
            status=status,
            batches=self.figures.batches,
            rows_in=self.figures.rows_in,
            rows_out=self.figures.rows_out,
            seconds=0.0 if self.first_started is None else time.monotonic() - self.first_started,
            output=self.order.output,
            checkpoint=self.order.checkpoint,
            finding=finding,
            restarts=self.restarts,
            kind=model.kind,
            dropped_records=self.figures.dropped_records,
        )
        return self.result
