"""What a run knows of its queries, from its events."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlstream.errors import Finding
from sqlstream.state.runs.events import (
    QueriesSelected,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QuerySilent,
    QueryStarted,
    QueryWaiting,
    RunEvent,
    SelectedQuery,
    Status,
)
from sqlstream.state.runs.silence import Cause, Silence
from sqlstream.state.runs.tracked_run import LiveStatus, TrackedQuery, TrackedRun, end_unfinished, follow
from sqlstream.times import utc_text
from tests.support.batches import batch, state

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)
ORDERS = SelectedQuery("orders", "model.shop.orders", "lake", "parquet", "append", "10 seconds", ("shop.orders",))
CHOSEN = QueriesSelected((ORDERS, replace(ORDERS, model="late", unique_id="model.shop.late")))
STARTED = QueryStarted("orders", 1, 2, "lake", "10 seconds", output="/out", checkpoint="/check")
FAILURE = Finding("query-failed", "it failed", "no disk", "make room")
RESULT = QueryResult("orders", "model.shop.orders", 1, 2, Status.SUCCESS, 1, 5, 5, 3.5, "/out", "/check")


def run_after(*events: RunEvent) -> TrackedRun:
    """Returns the run after `events`, one per second from noon."""
    run = TrackedRun()
    for second, event in enumerate((CHOSEN, *events)):
        run = follow(run, event, NOON + timedelta(seconds=second))
    return run


def orders(*events: RunEvent) -> TrackedQuery:
    """Returns the query `orders` after `events`."""
    return run_after(*events).queries["orders"]


def test_a_query_is_pending_then_runs() -> None:
    """A query is pending until it starts, when its output is known."""
    assert orders().status is LiveStatus.PENDING
    running = orders(STARTED)
    assert (running.status, running.output, running.checkpoint) == (LiveStatus.RUNNING, "/out", "/check")
    assert running.seconds(NOON + timedelta(seconds=61)) == 60


def test_a_failure_is_kept_after_a_restart() -> None:
    """The last failure is kept after a restart and after a successful end."""
    failing = (STARTED, QueryRestarting("orders", 1, 3, 1.0, FAILURE))
    assert orders(*failing).status is LiveStatus.RESTARTING
    again = orders(*failing, QueryResumed("orders", 1))
    assert (again.status, again.restarts, again.failure) == (LiveStatus.RUNNING, 1, FAILURE)
    assert orders(*failing, QueryResumed("orders", 1), RESULT).failure == FAILURE


def test_a_failure_has_its_time_and_its_restart() -> None:
    """A query that waits for its restart has the time of both; afterwards only that of the failure stays."""
    failing = (STARTED, QueryRestarting("orders", 2, 3, 5.0, FAILURE))
    waiting = orders(*failing).as_json(NOON)
    assert waiting["failed_at"] == utc_text(NOON + timedelta(seconds=2))
    assert waiting["retry"] == {"attempt": 2, "attempts": 3, "at": utc_text(NOON + timedelta(seconds=7))}

    again = orders(*failing, QueryResumed("orders", 1)).as_json(NOON)
    assert (again["failed_at"], again["retry"]) == (waiting["failed_at"], None)
    failed = replace(RESULT, status=Status.ERROR, finding=FAILURE)
    stopped = orders(*failing, failed).as_json(NOON)
    assert (stopped["failed_at"], stopped["retry"]) == (waiting["failed_at"], None)
    last = orders(*failing, QueryResumed("orders", 1), failed).as_json(NOON)
    assert last["failed_at"] == utc_text(NOON + timedelta(seconds=4))
    assert orders(STARTED).as_json(NOON)["failed_at"] is None


def test_a_silence_ends_with_the_next_row() -> None:
    """A reason for silence is kept until the next row, and after the end unless the query failed."""
    silent = QuerySilent("orders", Silence(Cause.FILTERED, "nothing passes"), True)

    assert orders(STARTED, batch(), silent).why_silent() == silent.silence
    assert orders(STARTED, batch(), silent, batch(), batch(5, 1)).why_silent() is None
    assert orders(STARTED, batch(), silent, RESULT).why_silent() == silent.silence
    assert orders(STARTED, batch(), silent, replace(RESULT, status=Status.ERROR)).why_silent() is None


def test_a_query_without_input_has_a_reason_after_its_end() -> None:
    """A query that ended without input has another reason than a running one, which can still get rows."""
    silence = orders(STARTED, RESULT).why_silent()

    assert silence == Silence(Cause.NO_INPUT, "there was no new data to read from shop.orders")


def test_a_running_query_without_input_has_a_reason() -> None:
    """A running query that has looked for rows and found none has the reason that no rows have arrived. One that has not
    looked yet, or whose first batch runs, may have some, also if it is stopped then.
    """
    waits, reads = QueryWaiting("orders", True), QueryWaiting("orders", False)
    stopped = replace(RESULT, status=Status.STOPPED, batches=0)

    silence = orders(STARTED, waits).why_silent()

    assert silence == Silence(Cause.NO_INPUT, "no rows have arrived from shop.orders since it started")
    again = (QueryRestarting("orders", 1, 3, 5.0, FAILURE), QueryResumed("orders", 1))
    for events in ((), (waits, reads), (stopped,), (waits, reads, stopped), (waits, *again)):
        assert orders(STARTED, *events).why_silent() is None
    assert orders(STARTED, waits, stopped).why_silent() is not None


def test_queries_of_an_ended_run_do_not_run() -> None:
    """When a run ends before its queries, none of them counts as running."""
    left = end_unfinished(run_after(STARTED))
    assert [query.status for query in left.queries.values()] == [Status.INTERRUPTED, Status.SKIPPED]
    assert end_unfinished(run_after()).queries == {}


def test_an_entry_is_plain_json_with_all_values() -> None:
    """The entry of a query is JSON with the keys of its result, and its last progress."""
    seen = batch(
        5, 3, state=state(late=2), watermark="2024-01-01T11:00:00.000Z", newest_event="2024-01-01T11:10:00.000Z"
    )
    entry = json.loads(json.dumps(orders(STARTED, seen).as_json(NOON + timedelta(seconds=3))))

    assert set(RESULT.as_json()) <= set(entry)
    assert (entry["status"], entry["batches"], entry["rows_in"], entry["rows_out"]) == ("running", 1, 5, 3)
    assert (entry["late_rows"], entry["watermark_lag_seconds"], entry["duration_seconds"]) == (2, 600.0, 2.0)
    assert entry["started_at"] == utc_text(NOON + timedelta(seconds=1))
    assert entry["progress"]["state"]["memory_bytes"] == 1000
    ended = orders(STARTED, seen, replace(RESULT, status=Status.ERROR, finding=FAILURE)).as_json(NOON)
    assert (ended["status"], ended["error"], ended["duration_seconds"]) == ("error", FAILURE.as_json(), 3.5)


def test_a_bug_in_the_figures_of_a_query_leaves_the_entries_of_others() -> None:
    """The entries are written at each event of any query; one with a bug has no figures."""
    run = run_after(STARTED)
    broken: Any = replace(run.queries["orders"], figures=None)  # type: ignore[arg-type]
    first, second = replace(run, queries={**run.queries, "orders": broken}).entries(NOON)

    assert first == {"unique_id": "model.shop.orders", "model": "orders", "kind": "stream", "status": "running"}
    assert second["batches"] == 0


def test_other_events_change_nothing() -> None:
    """Events without a query, or of a query outside the run, change nothing."""
    assert follow(run_after(), replace(RESULT, model="other"), NOON) == run_after()
