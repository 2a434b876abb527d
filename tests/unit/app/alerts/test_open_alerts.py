"""Where open alerts are shown: the state of a run, its metrics, and its texts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sqlstream.app.observe.metrics import RunFacts, query_samples
from sqlstream.app.observe.metrics_catalog import ALERT_ACTIVE
from sqlstream.report.run_json import event_fields, event_name
from sqlstream.report.run_text import Counts, TextReporter, summary_text
from sqlstream.state.runs.events import AlertChanged, QueriesSelected, SelectedQuery
from sqlstream.state.runs.tracked_run import TrackedQuery, TrackedRun, follow

NOW = datetime(2024, 1, 1, tzinfo=UTC)
QUERY = SelectedQuery("orders", "model.shop.orders", "lake", "parquet", "append", "default", ())
RAISED = AlertChanged("orders", "lag_over", "raised", "orders has 9 records left", "x", "2024-01-01T00:00:00Z", 9, 5)
RESOLVED = replace(RAISED, state="resolved", message="orders has 0 records left")


def after(*changes: AlertChanged) -> TrackedQuery:
    """Returns the query after changes of its alerts."""
    run = follow(TrackedRun(), QueriesSelected((QUERY,)), NOW)
    for change in changes:
        run = follow(run, change, NOW)
    return run.queries["orders"]


def test_the_state_of_a_query_has_its_open_alerts() -> None:
    """run_results.json has the alerts that are open, and not those that are resolved."""
    shown = {"alert": "lag_over", "message": RAISED.message, "since": RAISED.since}
    assert after(RAISED).as_json(NOW)["alerts"] == [shown]
    assert after(RAISED, RESOLVED).as_json(NOW)["alerts"] == []


def test_the_gauge_is_one_while_the_alert_is_open() -> None:
    """The metric of an alert goes from 1 to 0."""
    facts = RunFacts("shop", "local", "1", NOW)
    values = [
        (sample.labels, sample.value)
        for query in (after(), after(RAISED), after(RAISED, RESOLVED))
        for sample in query_samples(facts, query)
        if sample.metric is ALERT_ACTIVE
    ]
    labels = ("shop", "local", "orders", "lag_over")
    assert values == [(labels, 1), (labels, 0)]


def test_changes_are_lines_and_events() -> None:
    """A change of an alert is a line of text, and an event with the keys that the page reads."""
    lines: list[str] = []
    report = TextReporter(lines.append, lambda: NOW)
    for change in (RAISED, replace(RAISED, state="open"), replace(RAISED, state="repeated"), RESOLVED):
        report(change)
    assert [line.partition("  ")[2] for line in lines] == [
        "ALERT lag_over: orders has 9 records left",
        "ALERT open since 2024-01-01 00:00:00 UTC lag_over: orders has 9 records left",
        "ALERT still open lag_over: orders has 9 records left",
        "RESOLVED lag_over: orders has 0 records left",
    ]
    assert event_name(RAISED) == "alert"
    assert event_fields(RESOLVED).items() >= {"alert": "lag_over", "state": "resolved", "model": "orders"}.items()


def test_the_summary_lists_open_alerts() -> None:
    """The end of a run lists the alerts that are open."""
    text = summary_text([], Counts(), Path("/"), [RAISED])
    assert "1 open alert:\n  lag_over: orders has 9 records left (since 2024-01-01 00:00:00 UTC)\n\nDone." in text
