"""What an observer of a run is, and what it gets."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sqlstream.state.runs.events import RunEvent
from sqlstream.state.runs.run_state import QueryState, RunState


@dataclass(frozen=True)
class Observed:
    """An event of a run, which happened at `at` (with a time zone). `query` is the state of its query after the event,
    None for an event that belongs to no query.
    """

    at: datetime
    event: RunEvent
    query: QueryState | None


@dataclass(frozen=True)
class Snapshot:
    """A run at the time `at`. `dropped_batches` counts the batches that no observer got, because the observers were
    slower than the queries. The totals in `run` include them.
    """

    at: datetime
    run: RunState
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
