"""Whether the supervisor of a run's queries works."""

from __future__ import annotations

import time


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
