"""The current values of all metrics of a run."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlstream.app.observe import metrics_catalog as names
from sqlstream.app.observe.metrics_catalog import DURATION_BUCKETS, Metric
from sqlstream.state.progress.lag import MeasuredLag
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.figures import moment
from sqlstream.state.runs.progress import BatchProgress, SourceProgress
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


_LAG_METRICS = {
    "records": names.LAG_RECORDS,
    "files": names.LAG_FILES,
    "bytes": names.LAG_BYTES,
    "versions": names.LAG_VERSIONS,
}


def run_samples(facts: RunFacts, dropped_batches: int) -> Iterator[Sample]:
    """Yields the metrics of the run itself."""
    yield Sample(names.BUILD_INFO, (*facts.labels, facts.version, facts.spark_version), 1)
    yield Sample(names.RUN_START, facts.labels, facts.started_at.timestamp())
    yield Sample(names.DROPPED_BATCHES, facts.labels, dropped_batches)


def query_samples(
    facts: RunFacts, query: QueryState, totals: QueryTotals, lag: MeasuredLag | None = None
) -> Iterator[Sample]:
    """Yields the metrics of a query. Leaves out values that Spark does not know or that do not exist yet. `lag` is
    that of sources whose batches do not report it.
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
    measured = {} if lag is None else lag.sources
    for source, units in [*totals.lags.items(), *measured.items()]:
        for unit, count in units.items():
            yield Sample(_LAG_METRICS[unit], (*labels, source), count)


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


@dataclass
class QueryTotals:
    """The sums of one query. `buckets` counts batches by the first of `DURATION_BUCKETS` that is not exceeded; the last
    count is of longer batches. `part_ms`, `source_rows` and `lags` are by the names of parts and sources.
    """

    buckets: list[int] = field(default_factory=lambda: [0] * (len(DURATION_BUCKETS) + 1))
    duration_ms: int = 0
    part_ms: Counter[str] = field(default_factory=Counter)
    source_rows: Counter[str] = field(default_factory=Counter)
    lags: dict[str, Mapping[str, int]] = field(default_factory=dict)
    failures: int = 0

    def add(self, batch: BatchProgress) -> None:
        """Adds a batch."""
        self.buckets[bisect_left(DURATION_BUCKETS, batch.duration_ms / 1000)] += 1
        self.duration_ms += batch.duration_ms
        self.part_ms.update(batch.parts_ms)
        by_name: dict[str, list[SourceProgress]] = defaultdict(list)
        for source in batch.sources:  # a table may have several readers
            by_name[source.name].append(source)
        for name, readers in by_name.items():
            self.source_rows[name] += sum(reader.rows_in or 0 for reader in readers)
            self.lags[name] = _sums(readers)


def _sums(readers: list[SourceProgress]) -> Mapping[str, int]:
    sums: Counter[str] = Counter()
    for reader in readers:
        sums.update(reader.lag)
    return sums
