"""The current values of all metrics of a run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlstream.state.metrics import catalog as names
from sqlstream.state.metrics.catalog import Metric
from sqlstream.state.metrics.totals import QueryTotals
from sqlstream.state.runs.backlog import Unread
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.figures import moment
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.run_state import LiveStatus, QueryState

STATUSES = (*map(str, LiveStatus), *map(str, Status))
"""All statuses of a query."""


@dataclass(frozen=True)
class Histogram:
    """Counts of values: `buckets` as in `QueryTotals`, and the `total` of all values."""

    buckets: tuple[int, ...]
    total: float

    @property
    def count(self) -> int:
        """The number of values."""
        return sum(self.buckets)


@dataclass(frozen=True)
class Sample:
    """One value of a metric. `labels` are the values of its labels, in the order of the catalog."""

    metric: Metric
    labels: tuple[str, ...]
    value: float | Histogram


@dataclass(frozen=True)
class RunFacts:
    """What is known about a run besides its queries. `spark_version` is empty until Spark has started."""

    project: str
    target: str
    version: str
    started_at: datetime
    spark_version: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The values of the labels that every metric has."""
        return (self.project, self.target)


_BACKLOGS = {
    "records": names.BACKLOG_RECORDS,
    "files": names.BACKLOG_FILES,
    "bytes": names.BACKLOG_BYTES,
    "versions": names.BACKLOG_VERSIONS,
}


def run_samples(facts: RunFacts, dropped_batches: int) -> Iterator[Sample]:
    """Yields the metrics of the run itself."""
    yield Sample(names.BUILD_INFO, (*facts.labels, facts.version, facts.spark_version), 1)
    yield Sample(names.RUN_START, facts.labels, facts.started_at.timestamp())
    yield Sample(names.DROPPED_BATCHES, facts.labels, dropped_batches)


def query_samples(
    facts: RunFacts, query: QueryState, totals: QueryTotals, unread: Unread | None = None
) -> Iterator[Sample]:
    """Yields the metrics of a query. Leaves out values that Spark does not know or that do not exist yet. `unread` is
    what the query has left to read, where batches do not report it.
    """
    labels = (*facts.labels, query.query.model)
    about = query.query
    yield Sample(names.QUERY_INFO, (*labels, about.kind, about.sink, about.format, about.trigger), 1)
    for status in STATUSES:
        yield Sample(names.STATUS, (*labels, status), int(status == str(query.status)))
    for alert in query.alerts.values():
        yield Sample(names.ALERT_ACTIVE, (*labels, alert.alert), int(alert.is_open))
    for metric, value in _values(query, totals).items():
        if value is not None:
            yield Sample(metric, labels, value)
    if totals.duration_ms or any(totals.buckets):
        duration = Histogram(tuple(totals.buckets), totals.duration_ms / 1000)
        yield Sample(names.BATCH_DURATION, labels, duration)
    for part, milliseconds in totals.part_ms.items():
        yield Sample(names.PART_SECONDS, (*labels, part), milliseconds / 1000)
    for source, rows in totals.source_rows.items():
        yield Sample(names.SOURCE_ROWS, (*labels, source), rows)
    left = {} if unread is None else unread.sources
    for source, backlog in [*totals.backlogs.items(), *left.items()]:
        for unit, count in backlog.items():
            yield Sample(_BACKLOGS[unit], (*labels, source), count)


def _values(query: QueryState, totals: QueryTotals) -> Mapping[Metric, float | None]:
    figures = query.figures
    return {
        names.SILENT: int(query.status is LiveStatus.RUNNING and query.why_silent() is not None),
        names.BATCHES: figures.batches,
        names.ROWS_IN: figures.rows_in,
        names.ROWS_OUT: figures.rows_out,
        names.LATE_ROWS: figures.late_rows,
        names.DROPPED_RECORDS: figures.dropped_records,
        names.RESTARTS: query.restarts,
        names.FAILURES: totals.failures,
        names.NEWEST_EVENT: _seconds(figures.newest_event),
        names.WATERMARK_LAG: figures.lag_seconds,
        **(_batch_values(figures.last) if figures.last is not None else {}),
    }


def _batch_values(last: BatchProgress) -> Mapping[Metric, float | None]:
    return {
        names.INPUT_RATE: last.input_rows_per_second,
        names.PROCESSED_RATE: last.processed_rows_per_second,
        names.LAST_BATCH_ID: last.batch_id,
        names.LAST_BATCH: _seconds(last.started_at),
        names.WATERMARK: _seconds(last.watermark),
        names.STATE_ROWS: None if last.state is None else last.state.rows,
        names.STATE_BYTES: None if last.state is None else last.state.memory_bytes,
    }


def _seconds(time: str | None) -> float | None:
    found = moment(time)
    return None if found is None else found.timestamp()
