"""What follows a run: the background thread that calls its observers, and its queue."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from sqlstream.app.observe.observers import EventQueue, Observed, Observers, Snapshot, observing
from sqlstream.state.runs.events import Notice, QueriesSelected, RunEvent, SelectedQuery
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.tracked_run import TrackedRun, follow

NOW = datetime(2024, 1, 1, tzinfo=UTC)
SECONDS = 30


def batch(number: int) -> BatchProgress:
    """Returns a batch of one row."""
    return BatchProgress("orders", number, "2024-01-01T00:00:00Z", 10, 1, 1, None)


class Recording:
    """Keeps what it gets. `do` runs in `observe`, before the event is kept."""

    def __init__(self, name: str = "the recording", do: Callable[[RunEvent], None] = lambda _: None) -> None:
        self.name = name
        self.events: list[RunEvent] = []
        self.models: list[str | None] = []
        self.last: Snapshot | None = None
        self.ticked = threading.Event()
        self._do = do

    def observe(self, seen: Observed) -> None:
        """Keeps the event."""
        self._do(seen.event)
        self.events.append(seen.event)
        self.models.append(None if seen.query is None else seen.query.query.model)

    def tick(self, now: Snapshot) -> None:
        """Notes that it was called."""
        self.ticked.set()

    def close(self, last: Snapshot) -> None:
        """Keeps the last state."""
        self.last = last


def fail(_: object) -> None:
    """Fails."""
    raise ValueError("planted")


def hang(release: threading.Event) -> None:
    """Waits for `release`."""
    release.wait(SECONDS)


def put(observers: Observers, *events: RunEvent) -> None:
    """Passes on events as a run does."""
    run = TrackedRun()
    for event in events:
        run = follow(run, event, NOW)
        observers.put(event, run, NOW)


SELECTED = QueriesSelected((SelectedQuery("orders", "model.shop.orders", "lake", "parquet", "append", "once", ()),))


def test_observers_get_all_events_in_order() -> None:
    """Every observer gets every event in order with the state of its query, and then the last state of the run."""
    first, second = Recording(), Recording()
    observers = Observers([first, second], pytest.fail)
    with observing(observers):
        put(observers, SELECTED, batch(0), batch(1))
    assert first.events == second.events == [SELECTED, batch(0), batch(1)]
    assert first.models == [None, "orders", "orders"]
    assert first.last is not None
    assert first.last.run.queries["orders"].figures.batches == 2
    assert first.last.dropped_batches == 0


def test_an_observer_never_makes_the_run_wait() -> None:
    """While an observer hangs, all events are accepted, and `drain` gives up."""
    release = threading.Event()
    hanging = Recording(do=lambda _: hang(release))
    reports: list[str] = []
    observers = Observers([hanging], reports.append)
    observers.start()
    put(observers, *(batch(number) for number in range(100)))
    assert not observers.drain(0.01)
    observers.close(0.01)
    assert "the recording did not end within 0.01 seconds" in reports[0]
    release.set()


def test_a_full_queue_drops_the_oldest_batches_only() -> None:
    """Beyond its bound the queue drops the oldest batches, and keeps every other event in its place."""
    queue = EventQueue(max_batches=2)
    events: list[RunEvent] = [batch(0), Notice("a"), batch(1), Notice("b"), batch(2), batch(3)]
    for event in events:
        queue.put(Observed(NOW, event, None))
    queue.close()
    taken = [seen.event for seen in iter(lambda: queue.take(0), None)]
    assert taken == [Notice("a"), Notice("b"), batch(2), batch(3)]
    assert queue.dropped_batches == 2


def test_dropped_batches_are_reported_once_and_counted() -> None:
    """Observers that are slower than the queries miss batches; this is reported once, and the last state counts them."""
    release, waiting = threading.Event(), threading.Event()

    def wait(_: RunEvent) -> None:
        waiting.set()
        release.wait(SECONDS)

    slow = Recording(do=wait)
    reports: list[str] = []
    observers = Observers([slow], reports.append, EventQueue(max_batches=1))
    with observing(observers):
        put(observers, SELECTED)
        assert waiting.wait(SECONDS)
        put(observers, *(batch(number) for number in range(5)))
        release.set()
        assert observers.drain(SECONDS)
        slow.ticked.clear()
        assert slow.ticked.wait(SECONDS)
        slow.ticked.clear()
        assert slow.ticked.wait(SECONDS)
    assert slow.events == [SELECTED, batch(4)]
    assert slow.last is not None
    assert slow.last.dropped_batches == 4
    assert reports == ["the recording missed batches, because the run produces them faster"]


def test_a_failing_observer_harms_no_other() -> None:
    """An observer that raises is reported once, still gets later events, and the others get all of them."""
    broken, healthy = Recording("the broken one", fail), Recording()
    reports: list[str] = []
    observers = Observers([broken, healthy], reports.append)
    with observing(observers):
        put(observers, batch(0), batch(1))
    assert healthy.events == [batch(0), batch(1)]
    assert broken.last is not None
    assert reports == ["the broken one failed (planted); the run continues, see logs/sqlstream.log"]


def test_observers_tick_without_events() -> None:
    """An observer gets the state of the run also if nothing happens."""
    idle = Recording()
    with observing(Observers([idle], pytest.fail)):
        assert idle.ticked.wait(SECONDS)


def test_no_observers_start_no_thread() -> None:
    """A run without observers has no thread for them, and its events go nowhere."""
    before = threading.active_count()
    observers = Observers([], pytest.fail)
    with observing(observers):
        put(observers, batch(0))
        assert threading.active_count() == before
        assert observers.drain(0)
