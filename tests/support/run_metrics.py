"""The metrics of a run after some events."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlstream.app.observe.metrics import RunFacts, RunMetrics
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.errors import Finding
from sqlstream.state.runs.events import (
    QueriesSelected,
    QueryRestarting,
    QueryResumed,
    QueryStarted,
    RunEvent,
    RunStarting,
    SelectedQuery,
)
from sqlstream.state.runs.progress import BatchProgress, SourceProgress, StateProgress
from sqlstream.state.runs.tracked_run import TrackedRun, follow

NOW = datetime(2024, 1, 1, tzinfo=UTC)
FACTS = RunFacts("shop", "local", "1.2.3", NOW)
FAILURE = Finding("query-failed", "the broker is away", "", "", None)
QUERIES = tuple(
    SelectedQuery(name, f"model.shop.{name}", "lake", "kafka", "append", "10 seconds", ("shop.raw",))
    for name in ("orders", 'a "quoted"\nname')
)
STARTED = QueryStarted("orders", 1, 2, "lake", "10 seconds")


def batch(number: int) -> BatchProgress:
    """Returns a batch that took 300 ms."""
    source = SourceProgress("shop.raw", "KafkaV2[Subscribe[raw]]", None, None, 7, 1.0, 2.0, {"records": 5})
    return BatchProgress(
        "orders", number, "2024-01-01T00:00:00Z", 300, 7, 3, "2024-01-01T00:00:00Z",
        newest_event="2024-01-01T00:10:00Z", input_rows_per_second=1.5, processed_rows_per_second=20.0,
        parts_ms={"addBatch": 250, "queryPlanning": 30}, state=StateProgress(("x",), 9, 2, 0, 4096, 1),
        sources=(source, source), data_tests={"orders.positive": {"passed": 2, "failed": 1}},
        core_ms=600, tasks=4, cores=2,
    )  # fmt: skip


def metrics_after(*events: RunEvent) -> RunMetrics:
    """Returns the metrics of a run with these events."""
    metrics, run = RunMetrics(FACTS, dict), TrackedRun()
    for event in (QueriesSelected(QUERIES), *events):
        run = follow(run, event, NOW)
        metrics.observe(Observed(NOW, event, run.queries.get(getattr(event, "model", ""))))
    metrics.tick(Snapshot(NOW, run, 2))
    return metrics


EVENTS: tuple[RunEvent, ...] = (
    RunStarting(2, 1, 1, 0, "1.2.3", "4.3.0"),
    STARTED,
    batch(0),
    QueryRestarting("orders", 1, 5, 1.0, FAILURE),
    QueryResumed("orders", 1),
    batch(1),
)
