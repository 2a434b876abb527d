"""A queue of events between a run and its observers, which never makes the run wait."""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from itertools import count

from sqlstream.app.running.observers.observer import Observed
from sqlstream.state.runs.progress import BatchProgress

MAX_BATCHES = 10_000
"""The number of batches to keep for observers that are slower than the queries: about 20 MB."""


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
