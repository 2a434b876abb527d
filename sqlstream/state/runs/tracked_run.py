"""What has happened so far to each query and unit test of a run, from its events, for run_results.json and the live
table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.figures import COUNTED
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import (
    AlertChanged,
    QueriesSelected,
    QueryNotRun,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QuerySilent,
    QueryStarted,
    QueryWaiting,
    RunEvent,
    SelectedQuery,
    SelectedTest,
    Status,
    UnitTestEnded,
    UnitTestsSelected,
    UnitTestStarted,
)
from sqlstream.state.runs.progress import BatchProgress, Figures, add_batch
from sqlstream.state.runs.silence import Silence, no_input, nothing_new
from sqlstream.times import utc_text


class LiveStatus(StrEnum):
    """The status of a query that has not ended. `PENDING`: it has not started. `RUNNING`: it runs. `RESTARTING`: it has
    failed and waits for its restart.
    """

    PENDING = "pending"
    RUNNING = "running"
    RESTARTING = "restarting"


@dataclass(frozen=True)
class Retry:
    """The restart number `attempt` in a row, of at most `attempts`, which is due `at` a time."""

    attempt: int
    attempts: int
    at: datetime


@dataclass(frozen=True)
class TrackedQuery:
    """One query of a run: its status, its start time, and its figures. `failure` is the last of its `failures`, also if
    the query runs again, and `failed_at` its time. `retry` is set while the query waits for its restart. `result` is
    None until the query ends. `alerts` has the last change of each alert by its kind.
    """

    query: SelectedQuery
    status: Status | LiveStatus = LiveStatus.PENDING
    started_at: datetime | None = None
    output: str | None = None
    checkpoint: str | None = None
    restarts: int = 0
    failures: int = 0
    figures: Figures = field(default_factory=Figures)
    silence: Silence | None = None
    waits: bool = False
    failure: Finding | None = None
    failed_at: datetime | None = None
    retry: Retry | None = None
    result: QueryResult | None = None
    alerts: Mapping[str, AlertChanged] = field(default_factory=dict)

    @property
    def open_alerts(self) -> tuple[AlertChanged, ...]:
        """The alerts that are open."""
        return tuple(alert for alert in self.alerts.values() if alert.is_open)

    @property
    def has_ended(self) -> bool:
        """Whether the query has ended and will not restart."""
        return not isinstance(self.status, LiveStatus)

    @property
    def watermark_lag_seconds(self) -> float | None:
        """How far the watermark is behind the newest event time; None without one of them."""
        return self.figures.watermark_lag_seconds

    def seconds(self, now: datetime) -> float:
        """Returns the duration of the query, up to `now` if it still runs."""
        if self.result is not None:
            return self.result.seconds
        return 0.0 if self.started_at is None else max((now - self.started_at).total_seconds(), 0.0)

    def why_silent(self) -> Silence | None:
        """Returns why the query emits nothing, or emitted nothing until its end. None if it emits rows, has failed, or
        started only recently.
        """
        if self.figures.batches == 0 and not self.waits and self.status is not Status.SUCCESS:
            return None  # it has not looked for data yet, or its first batch has not finished
        if self.status is LiveStatus.RUNNING and self.figures.batches == 0:
            return no_input(self.query.sources)
        if self.status in (Status.ERROR, Status.SKIPPED):
            return None
        if self.has_ended and self.figures.sums["rows_in"] == 0 and self.query.kind == "stream":
            return nothing_new(self.query.sources)
        return self.silence

    def as_json(self, now: datetime) -> dict[str, object]:
        """Returns the entry of target/run_results.json."""
        figures, error = self.figures, None if self.result is None else self.result.finding
        silence = self.why_silent()
        return {
            "unique_id": self.query.unique_id,
            "model": self.query.model,
            "kind": self.query.kind,
            "status": str(self.status),
            "batches": figures.batches,
            **{name: figures.sums[name] for name in COUNTED},
            **({"rows_in": None, "rows_out": None} if self.status is Status.SKIPPED else {}),
            "restarts": self.restarts,
            "started_at": None if self.started_at is None else utc_text(self.started_at),
            "duration_seconds": round(self.seconds(now), 3),
            "sink": self.query.sink,
            "trigger": self.query.trigger,
            "output": self.output,
            "checkpoint": self.checkpoint,
            "error": None if error is None else error.as_json(),
            "reason": None if self.result is None else self.result.reason,
            "last_failure": None if self.failure is None else self.failure.as_json(),
            "failed_at": None if self.failed_at is None else utc_text(self.failed_at),
            "retry": None if self.retry is None else {**asdict(self.retry), "at": utc_text(self.retry.at)},
            "silence": None if silence is None else silence.as_json(),
            "alerts": [
                {"alert": each.alert, "message": each.message, "since": each.since} for each in self.open_alerts
            ],
            "data_tests": {name: dict(count) for name, count in figures.data_tests.items()},
            "new_fields": {name: dict(count) for name, count in figures.new_fields.items()},
            "new_types": dict(figures.new_types),
            "newest_event": figures.newest_event,
            "newest_event_at": figures.newest_event_at,
            "watermark_lag_seconds": self.watermark_lag_seconds,
            "latest_rates": list(figures.rates),
            "progress": None if figures.last is None else asdict(figures.last),
        }


@dataclass(frozen=True)
class TrackedTest:
    """One unit test of a build: its status, and its result when it has ended."""

    __test__ = False  # not a test of pytest

    test: SelectedTest
    status: Outcome | LiveStatus = LiveStatus.PENDING
    result: CaseResult | None = None

    def as_json(self) -> dict[str, object]:
        """Returns the entry of target/run_results.json."""
        result = self.result
        return {
            "unique_id": self.test.unique_id,
            "name": self.test.name,
            "model": self.test.model,
            "kind": "unit_test",
            "status": str(self.status),
            "duration_seconds": 0.0 if result is None else round(result.seconds, 3),
            "findings": [] if result is None else [finding.as_json() for finding in result.findings],
        }


@dataclass(frozen=True)
class TrackedRun:
    """The queries of a run by model name, in the order of their start. A build also has unit tests by unique id, and
    queries that it does not run.
    """

    queries: Mapping[str, TrackedQuery] = field(default_factory=dict)
    tests: Mapping[str, TrackedTest] = field(default_factory=dict)
    not_run: tuple[QueryNotRun, ...] = ()

    @property
    def has_started(self) -> bool:
        """Whether any query or unit test has started or was skipped. In a refused run, none has."""
        statuses = [query.status for query in self.queries.values()] + [test.status for test in self.tests.values()]
        return any(status is not LiveStatus.PENDING for status in statuses)

    def entries(self, now: datetime) -> tuple[dict[str, object], ...]:
        """Returns the entries of target/run_results.json: unit tests, queries, and queries that are not run."""
        queries = (_entry(query, now) for query in self.queries.values())
        return (
            *(test.as_json() for test in self.tests.values()),
            *queries,
            *(query.as_json() for query in self.not_run),
        )


def _entry(query: TrackedQuery, now: datetime) -> dict[str, object]:
    """Returns the entry of a query, without its figures if these have a bug: an event of a query writes all entries."""
    try:
        return query.as_json(now)
    except Exception:  # the bug is reported when an event of this query is recorded
        known = query.query
        return {"unique_id": known.unique_id, "model": known.model, "kind": known.kind, "status": str(query.status)}


def follow(run: TrackedRun, event: RunEvent, now: datetime) -> TrackedRun:
    """Returns the run after `event`, which happened at `now` (with a time zone)."""
    if isinstance(event, QueriesSelected):
        return replace(run, queries={query.model: TrackedQuery(query) for query in event.queries})
    if isinstance(event, UnitTestsSelected | UnitTestStarted | UnitTestEnded):
        return replace(run, tests={**run.tests, **_tests_after(event)})
    if isinstance(event, QueryNotRun):
        return replace(run, not_run=(*run.not_run, event))
    model: str = getattr(event, "model", "")
    if model not in run.queries:
        return run
    after = _follow_query(run.queries[model], event, now)
    return replace(run, queries={**run.queries, model: after})


def _tests_after(event: UnitTestsSelected | UnitTestStarted | UnitTestEnded) -> dict[str, TrackedTest]:
    """Returns the unit tests that `event` changes."""
    if isinstance(event, UnitTestsSelected):
        return {test.unique_id: TrackedTest(test) for test in event.tests}
    if isinstance(event, UnitTestStarted):
        return {event.test.unique_id: TrackedTest(event.test, LiveStatus.RUNNING)}
    return {event.test.unique_id: TrackedTest(event.test, event.result.outcome, event.result)}


def _follow_query(query: TrackedQuery, event: RunEvent, now: datetime) -> TrackedQuery:
    if isinstance(event, QueryStarted):
        return replace(
            query, status=LiveStatus.RUNNING, started_at=now, output=event.output, checkpoint=event.checkpoint
        )
    if isinstance(event, BatchProgress):
        figures = add_batch(query.figures, event)
        # a batch with rows ends the silence
        return replace(query, figures=figures, silence=query.silence if figures.quiet.batches else None)
    if isinstance(event, QueryWaiting):
        return replace(query, waits=event.waits)
    if isinstance(event, QuerySilent):
        return replace(query, silence=event.silence)
    if isinstance(event, AlertChanged):
        return replace(query, alerts={**query.alerts, event.alert: event})
    if isinstance(event, QueryRestarting):
        return replace(
            query,
            status=LiveStatus.RESTARTING,
            failure=event.finding,
            failures=query.failures + 1,
            failed_at=now,
            retry=Retry(event.attempt, event.attempts, now + timedelta(seconds=event.delay_seconds)),
            waits=False,
        )
    if isinstance(event, QueryResumed):
        return replace(query, status=LiveStatus.RUNNING, restarts=event.restarts, retry=None)
    if isinstance(event, QueryResult):
        failures = query.failures + (event.status is Status.ERROR)
        failure, failed_at = event.finding or query.failure, query.failed_at
        if event.finding is not None and query.retry is None:  # not stopped while it waited for its restart
            failed_at = now
        ended = replace(query, status=event.status, result=event, failure=failure, failures=failures)
        return replace(ended, failed_at=failed_at, retry=None)
    return query


def end_unfinished(run: TrackedRun) -> TrackedRun:
    """Returns the run that ended before its queries: running ones count as interrupted, the others as skipped. So do
    unit tests that have not ended.
    """
    if not run.has_started:
        return TrackedRun()
    queries = {name: _abandoned(query) for name, query in run.queries.items()}
    tests = {
        name: test if test.result is not None else replace(test, status=Outcome.SKIPPED)
        for name, test in run.tests.items()
    }
    return replace(run, queries=queries, tests=tests)


def _abandoned(query: TrackedQuery) -> TrackedQuery:
    if query.has_ended:
        return query
    return replace(query, status=Status.SKIPPED if query.status is LiveStatus.PENDING else Status.INTERRUPTED)
