"""The current values of all metrics of a run, for any thread that asks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from sqlstream.app.observe import metrics_catalog as names
from sqlstream.app.observe.metrics_catalog import Metric
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.figures import Figure
from sqlstream.state.runs.events import RunStarting, Status
from sqlstream.state.runs.progress import Figures, moment
from sqlstream.state.runs.tracked_run import LiveStatus, TrackedQuery, TrackedRun
from sqlstream.state.sources.lag import MeasuredLag, add_lags

STATUSES = (*map(str, LiveStatus), *map(str, Status))
"""All statuses of a query."""


@dataclass(frozen=True)
class Histogram:
    """Counts of values: `buckets` as `durations` in `Figures`, and the `total` of all values."""

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


def query_samples(facts: RunFacts, query: TrackedQuery, lag: MeasuredLag | None = None) -> Iterator[Sample]:
    """Yields the metrics of a query. Leaves out values that Spark does not know or that do not exist yet. `lag` is
    that of sources whose batches do not report it.
    """
    labels = (*facts.labels, query.query.model)
    about, figures = query.query, query.figures
    yield Sample(names.QUERY_INFO, (*labels, about.kind, about.sink, about.format, about.trigger), 1)
    for status in STATUSES:
        yield Sample(names.STATUS, (*labels, status), int(status == str(query.status)))
    for alert in query.alerts.values():
        yield Sample(names.ALERT_ACTIVE, (*labels, alert.alert), int(alert.is_open))
    for metric, value in _values(query).items():
        if value is not None:
            yield Sample(metric, labels, value)
    if figures.batches:
        duration = Histogram(figures.durations, (figures.sums["duration_ms"] or 0) / 1000)
        yield Sample(names.BATCH_DURATION, labels, duration)
    yield from _sums_by_name(labels, figures)
    reported = {} if figures.last is None else figures.last.by_source()
    lags = {source: add_lags(reader.lag for reader in readers) for source, readers in reported.items()}
    for source, units in [*lags.items(), *({} if lag is None else lag.sources).items()]:
        for unit, count in units.items():
            yield Sample(_LAG_METRICS[unit], (*labels, source), count)


def _sums_by_name(labels: tuple[str, ...], figures: Figures) -> Iterator[Sample]:
    for part, milliseconds in figures.parts_ms.items():
        yield Sample(names.PART_SECONDS, (*labels, part), milliseconds / 1000)
    for source, rows in figures.source_rows.items():
        yield Sample(names.SOURCE_ROWS, (*labels, source), rows)
    for test, counts in figures.data_tests.items():
        for result, rows in counts.items():
            yield Sample(names.DATA_TEST_ROWS, (*labels, test, result), rows)


def _values(query: TrackedQuery) -> Mapping[Metric, float | None]:
    figures = query.figures
    return {
        names.SILENT: int(query.status is LiveStatus.RUNNING and query.why_silent() is not None),
        names.BATCHES: figures.batches,
        names.FAILURES: query.failures,
        names.NEWEST_EVENT: _seconds(figures.newest_event),
        names.LAST_BATCH_ID: None if figures.last is None else figures.last.batch_id,
        names.LAST_BATCH: None if figures.last is None else _seconds(figures.last.started_at),
        **{metric: _value(query, figure) for figure, metric in names.OF_FIGURES.items()},
    }


def _value(query: TrackedQuery, figure: Figure) -> float | None:
    """Returns the sum of a figure, or its value after the last batch, in the unit of its metric."""
    if figure.aggregate == "sum" and not figure.of_query:
        found = query.figures.sums[figure.name]
        return found / 1000 if found is not None and figure.name.endswith("_ms") else found
    value = getattr(query if figure.of_query else query.figures.last, figure.name, None)
    return _seconds(value) if figure.type == "timestamp" else value


def _seconds(time: str | None) -> float | None:
    found = moment(time)
    return None if found is None else found.timestamp()


logger = logging.getLogger("sqlstream.metrics")


class RunMetrics:
    """The metrics of a run. `lags` returns the lag of each query, where batches do not report it. Other
    threads call `samples` and `run` at any time.
    """

    name = "the metrics"

    def __init__(self, facts: RunFacts, lags: Callable[[], Mapping[str, MeasuredLag]]) -> None:
        self._facts, self._lags = facts, lags
        self._queries: dict[str, TrackedQuery] = {}
        self._dropped_batches = 0
        self._failed: set[str] = set()
        self._lock = threading.Lock()

    def observe(self, seen: Observed) -> None:
        """Adds an event to the metrics."""
        with self._lock:
            if isinstance(seen.event, RunStarting):
                self._facts = replace(self._facts, spark_version=seen.event.spark_version)
            if seen.query is not None:
                self._queries[seen.query.query.model] = seen.query

    def tick(self, now: Snapshot) -> None:
        """Takes the state of all queries, also of those without events."""
        with self._lock:
            self._queries = dict(now.run.queries)
            self._dropped_batches = now.dropped_batches

    def close(self, last: Snapshot) -> None:
        """Takes the last state of all queries."""
        self.tick(last)

    def samples(self) -> list[Sample]:
        """Returns the current values of all metrics, query by query. A bug in those of one query hides no others."""
        with self._lock:
            found = list(run_samples(self._facts, self._dropped_batches))
            lags = self._lags()
            for model, query in self._queries.items():
                try:
                    found += list(query_samples(self._facts, query, lags.get(model)))
                except Exception:
                    if model not in self._failed:
                        logger.exception("the metrics of %s have a bug", model)
                    self._failed.add(model)
            return found

    @property
    def run(self) -> TrackedRun:
        """The current state of the queries."""
        with self._lock:
            return TrackedRun(dict(self._queries))
