"""Calls the observers of a run in a background thread, so that none of them slows a query."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from datetime import UTC, datetime

from sqlstream.app.running.observers.event_queue import EventQueue
from sqlstream.app.running.observers.observer import Observed, Observer, Snapshot
from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.run_state import RunState

TICK_SECONDS = 1.0
"""How often observers get the state of the run."""

CLOSE_SECONDS = 10.0
"""How long the end of a run waits for its observers."""

logger = logging.getLogger("sqlstream.observers")


class Observers:
    """The observers of one run. `report` gets a sentence for each problem, once, in the background thread."""

    def __init__(
        self, observers: Sequence[Observer], report: Callable[[str], None], queue: EventQueue | None = None
    ) -> None:
        self._observers = tuple(observers)
        self._report = report
        self._queue = EventQueue() if queue is None else queue
        self._run = RunState()
        self._reported: set[str] = set()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="observers", daemon=True)

    def start(self) -> None:
        """Starts the background thread; does nothing without observers."""
        if self._observers:
            self._thread.start()

    @property
    def _is_started(self) -> bool:
        return self._thread.ident is not None

    def put(self, event: RunEvent, run: RunState, at: datetime) -> None:
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
