"""What follows the alerts of a run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from sqlstream.app.alerts.delivery import Change
from sqlstream.app.alerts.evaluation import AlertBook, QueryRules
from sqlstream.app.alerts.measures import Measures, Reading
from sqlstream.app.alerts.run_alerts import AlertObserver
from sqlstream.app.observe.observers import Snapshot
from sqlstream.project.configuration.alerts import AlertKind, AlertRule
from sqlstream.state.runs.events import QueryStarted
from sqlstream.state.runs.tracked_run import TrackedRun

START = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_bug_in_the_alerts_of_one_query_leaves_those_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """An alert is raised although the evaluation of another query fails, and the failure is passed on."""
    rules = QueryRules({AlertKind.NO_ROWS_FOR: AlertRule(10.0, 10.0)})
    book = AlertBook({"poor": rules, "sound": rules}, (), None, lambda: "id")
    for model in ("poor", "sound"):
        book.observe(model, QueryStarted(model, 1, 2, "lake", "once"), START)
    real, poor = Measures.read, book._measures["poor"]

    def read(self: Measures, kind: AlertKind, at: datetime) -> Reading | None:
        if self is poor:
            raise KeyError("planted")
        return real(self, kind, at)

    monkeypatch.setattr(Measures, "read", read)
    changes: list[Change] = []
    observer = AlertObserver(book, changes.append, dict)

    with pytest.raises(KeyError, match="planted"):
        observer.tick(Snapshot(START + timedelta(seconds=20), TrackedRun(), 0))

    assert [(each.event.model, each.event.state) for each in changes] == [("sound", "raised")]
