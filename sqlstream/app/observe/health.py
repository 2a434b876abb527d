"""Whether a run works and is ready, for probes such as those of Kubernetes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from sqlstream.state.runs.events import Status
from sqlstream.state.runs.tracked_run import LiveStatus, TrackedRun

STALE_SECONDS = 300.0
"""How long the supervisor of the queries can be busy with one step, such as the restart of a query."""


@dataclass(frozen=True)
class Health:
    """The answer to a probe: `is_well`, and why not."""

    is_well: bool
    body: dict[str, Any]


def liveness(idle_seconds: float | None) -> Health:
    """Returns whether the supervisor of the queries works. `idle_seconds` is the time since it last checked them, None
    before the queries start.
    """
    is_live = idle_seconds is None or idle_seconds < STALE_SECONDS
    why = [] if is_live else [f"the supervisor of the queries has not answered for {idle_seconds:.0f} seconds"]
    return Health(is_live, {"live": is_live, "reasons": why})


def readiness(run: TrackedRun) -> Health:
    """Returns whether all queries have started and none has failed for good."""
    reasons = [] if run.queries else ["the project is being compiled"]
    for name, query in run.queries.items():
        if query.status is LiveStatus.PENDING:
            reasons.append(f"{name} has not started")
        elif query.status is Status.ERROR:
            why = query.failure.message if query.failure is not None else "see the log"
            reasons.append(f"{name} has failed: {why}")
        elif query.status is Status.SKIPPED:
            reasons.append(f"{name} was skipped")
    statuses = {name: str(query.status) for name, query in run.queries.items()}
    return Health(not reasons, {"ready": not reasons, "reasons": reasons, "queries": statuses})


class Heartbeat:
    """The time since the supervisor of the queries last did something. Threads can share it."""

    def __init__(self) -> None:
        self._beat_at: float | None = None

    def beat(self) -> None:
        """Called by the supervisor in each turn of its loop, about ten times a second."""
        self._beat_at = time.monotonic()

    def end(self) -> None:
        """Called when the supervision ends."""
        self._beat_at = None

    @property
    def idle_seconds(self) -> float | None:
        """The seconds since the last beat; None while nothing is supervised."""
        beat_at = self._beat_at
        return None if beat_at is None else time.monotonic() - beat_at
