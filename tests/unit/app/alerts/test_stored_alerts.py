"""The open alerts of submitted runs: kept beside their journals, and continued by the next run of the same queries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sqlstream.app.alerts.alerts_store import AlertStore, alerts_text, read_earlier
from sqlstream.app.alerts.delivery import Change, Outbox, OutboxTexts
from sqlstream.app.alerts.evaluation import AlertBook, OpenAlert, QueryRules
from sqlstream.app.alerts.payloads import RunNames
from sqlstream.app.alerts.run_alerts import AlertObserver, RunAlerts
from sqlstream.app.loading.load import Invocation
from sqlstream.app.observe import stored_journal
from sqlstream.app.observe.observers import Snapshot
from sqlstream.app.observe.stored_journal import StoredJournal
from sqlstream.project.configuration.alerts import AlertKind, AlertRule
from sqlstream.spark.storage.lease import LocalLeaseFiles
from sqlstream.state.runs.events import AlertChanged, QueryStarted
from sqlstream.state.runs.tracked_run import TrackedRun
from tests.support.stored_alerts import alert

START = datetime(2026, 1, 1, tzinfo=UTC)
RULES = QueryRules({AlertKind.NO_ROWS_FOR: AlertRule(10.0, 10.0)})


Running = Callable[..., AbstractContextManager["Run"]]


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes often."""
    monkeypatch.setattr(stored_journal, "WRITE_SECONDS", 0.01)


class Run:
    """A submitted run of some queries, which starts `minutes` after the first one, with a logs folder that ends with it."""

    def __init__(self, folder: Path, minutes: int, queries: tuple[str, ...], everything: tuple[str, ...]) -> None:
        self.at = START + timedelta(minutes=minutes)
        self.changes: list[AlertChanged] = []
        self.journal = StoredJournal(Invocation(started_at=self.at), print)
        self.store = AlertStore(folder / f"driver{minutes}", "prod")
        names = RunNames("shop", "prod", "run")
        self.outbox = Outbox(self.store, (), OutboxTexts(names, lambda text: text, self.changes.append, print))
        book = AlertBook(dict.fromkeys(queries, RULES), (), 3600.0, lambda: f"id{minutes}")
        self.observer = AlertObserver(book, self.outbox.put, dict)
        for query in queries:
            book.observe(query, QueryStarted(query, 1, 2, "lake", "once"), self.at)
        self.alerts = RunAlerts(
            self.observer, self.outbox, (), None, self.store, frozenset(queries), frozenset(everything)
        )

    def after(self, seconds: float) -> list[tuple[str, str, str]]:
        """Returns the model, state and id of each change so far, after `seconds` of the run."""
        self.observer.tick(Snapshot(self.at + timedelta(seconds=seconds), TrackedRun(), 0))
        self.outbox.join(60)
        return [(each.model, each.state, each.id) for each in self.changes]


@pytest.fixture
def running(tmp_path: Path) -> Running:
    """Starts a run, and ends it after the body."""

    @contextmanager
    def run(
        minutes: int, *queries: str, everything: tuple[str, ...] = ("a", "b"), files: LocalLeaseFiles | None = None
    ) -> Iterator[Run]:
        started = Run(tmp_path, minutes, queries, everything)
        with ExitStack() as stack:
            stack.callback(started.journal.close)
            stack.callback(started.store.close)
            stack.callback(started.outbox.end, 60)
            started.outbox.start()
            started.journal.start(lambda: files or LocalLeaseFiles(str(tmp_path / "_logs")))
            started.alerts.continue_from(started.journal)
            started.alerts.keep()
            yield started

    return run


def notes(folder: Path) -> int:
    """Returns the number of notes in the storage."""
    return len(list((folder / "_logs").glob("*_note_*")))


def test_the_next_run_continues_an_open_alert(running: Running, tmp_path: Path) -> None:
    """An alert is not raised a second time. It keeps its id and its time, and the next run resolves it."""
    with running(0, "a", "b") as first:
        assert first.after(9) == []
        assert first.after(11) == [("a", "raised", "id0"), ("b", "raised", "id0")]
    with running(1, "a", "b") as second:
        assert second.after(5) == [("a", "open", "id0"), ("b", "open", "id0")]
        assert second.after(11)[2:] == []  # over the limit again, and open already
        assert {each.since for each in second.changes} == {"2026-01-01T00:00:11.000Z"}
    with running(2, "a") as third:  # `b` is a query of another run
        assert third.after(1) == [("a", "open", "id0")]
    with running(3, "a", everything=("a",)) as last:
        assert last.after(1) == [("a", "open", "id0"), ("b", "resolved", "id0")]
    with running(4, "a", "b") as after:
        assert after.after(1) == [("a", "open", "id0")]
    assert notes(tmp_path) == 1


def test_a_killed_run_leaves_its_alerts(running: Running, tmp_path: Path) -> None:
    """What a run has written before `kill -9` is known, also if it was writing a file."""
    with running(0, "a") as killed:
        killed.after(11)
    torn = next((tmp_path / "_logs").glob("*_note_*"))
    torn.with_name(torn.name.replace("_0000001", "_0000002")).write_text('{"queries": ["a"], "op')
    with running(1, "a") as second:
        assert second.after(1) == [("a", "open", "id0")]


def test_runs_of_other_queries_keep_theirs(running: Running, tmp_path: Path) -> None:
    """Runs of parts of the project do not forget the alerts of the other parts."""
    with running(0, "a") as first, running(1, "b") as second:
        first.after(11)
        second.after(11)
    with running(2, "b") as third:
        assert third.after(1) == [("b", "open", "id1")]
    assert notes(tmp_path) == 2
    with running(3, "a", "b") as both:
        assert sorted(both.after(1)) == [("a", "open", "id0"), ("b", "open", "id1")]
    assert notes(tmp_path) == 1


def test_a_run_without_alerts_writes_nothing(running: Running, tmp_path: Path) -> None:
    """The storage of most targets has no notes."""
    with running(0, "a") as run:
        assert run.after(1) == []
    assert notes(tmp_path) == 0


def test_a_store_that_fails_is_written_later(running: Running, tmp_path: Path) -> None:
    """An alert that is raised while the storage fails is there in the end."""

    class Failing(LocalLeaseFiles):
        failures = 3

        def create(self, name: str, text: str = "") -> bool:
            self.failures -= 1
            if self.failures >= 0:
                super().create(name, text[:5])
                raise OSError("no space left")
            return super().create(name, text)

    with running(0, "a", files=Failing(str(tmp_path / "_logs"))) as first:
        first.after(11)
    with running(1, "a") as second:
        assert second.after(1) == [("a", "open", "id0")]
    assert notes(tmp_path) == 1


def test_an_alert_of_this_run_is_kept() -> None:
    """What this run has raised before it could read the storage is not replaced by an earlier alert."""
    changes: list[Change] = []
    book = AlertBook({"a": RULES}, (), None, lambda: "mine")
    book.observe("a", QueryStarted("a", 1, 2, "lake", "once"), START)
    observer = AlertObserver(book, changes.append, dict)
    observer.tick(Snapshot(START + timedelta(seconds=11), TrackedRun(), 0))
    earlier = OpenAlert("a", AlertKind.NO_ROWS_FOR, "old", START, START, "no rows", 11.0, 10.0)

    observer.adopt([earlier])
    observer.tick(Snapshot(START + timedelta(seconds=12), TrackedRun(), 0))

    assert [(each.event.state, each.event.id) for each in changes] == [("raised", "mine")]


def test_files_of_other_versions_are_skipped() -> None:
    """A file that is not understood hides no other one, and is not removed."""
    found = read_earlier(
        [("1", alerts_text(["orders_0"], [alert(0)])), ("2", '{"queries": 1}'), ("3", "[]"), ("4", "")]
    )

    assert found.alerts == (alert(0),)
    assert (found.replaced_by(["orders_0", "other"]), found.replaced_by(["other"])) == (["1"], [])
