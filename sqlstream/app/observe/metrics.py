"""Follows a run to export its metrics: the current values, for any thread that asks."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.app.observe.samples import QueryTotals, RunFacts, Sample, query_samples, run_samples
from sqlstream.state.progress.lag import MeasuredLag
from sqlstream.state.runs.events import QueryRestarting, QueryResult, RunStarting, Status
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.run_state import QueryState, RunState

logger = logging.getLogger("sqlstream.metrics")


class RunMetrics:
    """The metrics of a run. `lags` returns the lag of each query, where batches do not report it. Other
    threads call `samples` and `run` at any time.
    """

    name = "the metrics"

    def __init__(self, facts: RunFacts, lags: Callable[[], Mapping[str, MeasuredLag]]) -> None:
        self._facts, self._lags = facts, lags
        self._queries: dict[str, QueryState] = {}
        self._totals: defaultdict[str, QueryTotals] = defaultdict(QueryTotals)
        self._dropped_batches = 0
        self._failed: set[str] = set()
        self._lock = threading.Lock()

    def observe(self, seen: Observed) -> None:
        """Adds an event to the metrics."""
        with self._lock:
            if isinstance(seen.event, RunStarting):
                self._facts = replace(self._facts, spark_version=seen.event.spark_version)
            if seen.query is None:
                return
            model = seen.query.query.model
            self._queries[model] = seen.query
            if isinstance(seen.event, BatchProgress):
                self._totals[model].add(seen.event)
            elif _is_failure(seen):
                self._totals[model].failures += 1

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
            facts, totals = self._facts, self._totals
            found = list(run_samples(facts, self._dropped_batches))
            lags = self._lags()
            for model, query in self._queries.items():
                try:
                    found += list(query_samples(facts, query, totals[model], lags.get(model)))
                except Exception:
                    if model not in self._failed:
                        logger.exception("the metrics of %s have a bug", model)
                    self._failed.add(model)
            return found

    @property
    def run(self) -> RunState:
        """The current state of the queries."""
        with self._lock:
            return RunState(dict(self._queries))


def _is_failure(seen: Observed) -> bool:
    event = seen.event
    return isinstance(event, QueryRestarting) or (isinstance(event, QueryResult) and event.status is Status.ERROR)
