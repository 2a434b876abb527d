"""Observers of a run: what they are, the queue that never makes queries wait, and the background thread that calls
them.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from typing import Protocol

from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.tracked_run import TrackedQuery, TrackedRun

MAX_BATCHES = 10_000
"""The number of batches to keep for observers that are slower than the queries: about 20 MB."""

TICK_SECONDS = 1.0
"""How often observers get the state of the run."""

CLOSE_SECONDS = 10.0
"""How long the end of a run waits for its observers."""

logger = logging.getLogger("sqlstream.observers")


class EventQueue:
    """Keeps every event until it is taken, except batches beyond `max_batches`: it drops the oldest of them."""

    def __init__(self, max_batches: int = MAX_BATCHES) -> None:
        self._max_batches = max_batches
        self._numbers = count()
        self._events: OrderedDict[int, Observed] = OrderedDict()
        self._batches: deque[int] = deque()
        self._changed = threading.Condition()
        self._is_closed = self._is_handling = False
        self.dropped_batches = 0

    def put(self, seen: Observed) -> None:
        """Adds an event. Never waits for an observer."""
        with self._changed:
            number = next(self._numbers)
            self._events[number] = seen
            if isinstance(seen.event, BatchProgress):
                self._batches.append(number)
                if len(self._batches) > self._max_batches:
                    del self._events[self._batches.popleft()]
                    self.dropped_batches += 1
            self._changed.notify_all()

    def take(self, seconds: float) -> Observed | None:
        """Returns the next event, None if there is none within `seconds` or the queue is closed and empty. The event
        counts as handled when the next call begins.
        """
        with self._changed:
            self._is_handling = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._events or self._is_closed, seconds)
            if not self._events:
                return None
            number, seen = self._events.popitem(last=False)
            if self._batches and self._batches[0] == number:
                self._batches.popleft()
            self._is_handling = True
            return seen

    def join(self, seconds: float) -> bool:
        """Waits until all events are handled; returns whether they are after `seconds`."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._events and not self._is_handling, seconds)

    def close(self) -> None:
        """Makes `take` return at once when the queue is empty."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    @property
    def is_done(self) -> bool:
        """Whether the queue is closed and empty."""
        with self._changed:
            return self._is_closed and not self._events

    def __len__(self) -> int:
        with self._changed:
            return len(self._events)


class Observers:
    """The observers of one run. `report` gets a sentence for each problem, once, in the background thread."""

    def __init__(
        self, observers: Sequence[Observer], report: Callable[[str], None], queue: EventQueue | None = None
    ) -> None:
        self._observers = tuple(observers)
        self._report = report
        self._queue = EventQueue() if queue is None else queue
        self._run = TrackedRun()
        self._reported: set[str] = set()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="observers", daemon=True)

    def start(self) -> None:
        """Starts the background thread; does nothing without observers."""
        if self._observers:
            self._thread.start()

    @property
    def _is_started(self) -> bool:
        return self._thread.ident is not None

    def put(self, event: RunEvent, run: TrackedRun, at: datetime) -> None:
        """Passes on an event at the time `at`, and the state of the run after it. Returns at once."""
        if self._is_started:
            self._run = run
            self._queue.put(Observed(at, event, run.queries.get(getattr(event, "model", ""))))

    def drain(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Waits until the observers have got all events; returns whether they have after `seconds`."""
        return not self._is_started or self._queue.join(seconds)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Passes on the remaining events, and closes the observers. After `seconds`, reports what is left."""
        if not self._is_started:
            return
        self._queue.close()
        self._thread.join(seconds)
        if self._thread.is_alive():
            names = _listed([each.name for each in self._observers])
            left = len(self._queue)
            self._report(f"{names} did not end within {seconds:g} seconds; {left:,} events of the run are lost")

    def _work(self) -> None:
        next_tick = time.monotonic()
        while not self._queue.is_done:
            seen = self._queue.take(max(next_tick - time.monotonic(), 0.0))
            if seen is not None:
                self._call(lambda each, seen=seen: each.observe(seen))  # type: ignore[misc]
            if time.monotonic() >= next_tick:
                self._tick()
                next_tick = time.monotonic() + TICK_SECONDS
        self._call(lambda each: each.close(self._snapshot()))

    def _tick(self) -> None:
        now = self._snapshot()
        if now.dropped_batches:
            names = _listed([each.name for each in self._observers])
            self._report_once("dropped", f"{names} missed batches, because the run produces them faster")
        self._call(lambda each: each.tick(now))

    def _snapshot(self) -> Snapshot:
        return Snapshot(datetime.now(UTC), self._run, self._queue.dropped_batches)

    def _call(self, method: Callable[[Observer], None]) -> None:
        for each in self._observers:
            try:
                method(each)
            except Exception as error:  # an observer must harm neither the run nor the others
                logger.exception("%s failed", each.name)
                what = str(error).strip() or type(error).__name__
                self._report_once(each.name, f"{each.name} failed ({what}); the run continues, see logs/sqlstream.log")

    def _report_once(self, key: str, text: str) -> None:
        if key not in self._reported:
            self._reported.add(key)
            self._report(text)


NO_OBSERVERS = Observers((), lambda _text: None)
"""The observers of a run that nothing follows."""


@contextmanager
def observing(observers: Observers) -> Iterator[None]:
    """Starts the observers for the body, and closes them after it."""
    observers.start()
    try:
        yield
    finally:
        observers.close()


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


@dataclass(frozen=True)
class Observed:
    """An event of a run, which happened at `at` (with a time zone). `query` is the state of its query after the event,
    None for an event that belongs to no query.
    """

    at: datetime
    event: RunEvent
    query: TrackedQuery | None


@dataclass(frozen=True)
class Snapshot:
    """A run at the time `at`. `dropped_batches` counts the batches that no observer got, because the observers were
    slower than the queries. The totals in `run` include them.
    """

    at: datetime
    run: TrackedRun
    dropped_batches: int


class Observer(Protocol):
    """Follows a run. One background thread calls all methods, one at a time, so an observer needs no locks for its own
    values; but it must not wait for a network or a disk, because the others wait for it.

    An error in `observe` or `tick` is reported once, and the observer still gets later events.
    """

    @property
    def name(self) -> str:
        """The name in messages, such as `the alerts`."""

    def observe(self, seen: Observed) -> None:
        """Called for each event in order. Batches can be missing, see `Snapshot`; no other event is ever missing."""

    def tick(self, now: Snapshot) -> None:
        """Called about once a second, also without events."""

    def close(self, last: Snapshot) -> None:
        """Called once, after the last event. It must return within a few seconds."""
