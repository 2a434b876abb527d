"""What queries have not read yet, from their checkpoints and sources, where Spark's batches do not report it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from sqlstream.state.progress.lag import FileLag, Lag, VersionLag
from sqlstream.state.progress.progress import VersionProgress

SHARE = 50
"""Reading takes at most 1/50 of the time."""

Backlog = Mapping[str, int]
"""What is left to read, by unit: `files` and `bytes`, `versions` or `records`."""


class Pace:
    """When to read checkpoints again: every `seconds`, and less often if that is slow."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = self._next = 0.0

    def begin(self) -> bool:
        """Returns whether it is time to read. Call `end` after it."""
        self._began = time.monotonic()
        return self._began >= self._next

    def end(self) -> float:
        """Sets the time of the next reading, and returns the seconds until then."""
        now = time.monotonic()
        wait = max(self._seconds, SHARE * (now - self._began))
        self._next = now + wait
        return wait


def source_backlogs(version: VersionProgress) -> dict[str, Backlog]:
    """Returns what a version has not read yet, by source; of several readers of one table, what the slowest has left.
    Leaves out sources of which it is unknown.
    """
    found: dict[str, dict[str, int]] = {}
    for source in version.sources:
        for unit, count in _counts(source.lag):
            units = found.setdefault(source.name, {})
            units[unit] = max(units.get(unit, 0), count)
    return dict(found)


def total(backlogs: Mapping[str, Backlog]) -> Backlog | None:
    """Returns the sums over all sources, None without any."""
    found: dict[str, int] = {}
    for backlog in backlogs.values():
        for unit, count in backlog.items():
            found[unit] = found.get(unit, 0) + count
    return found or None


def _counts(lag: Lag | None) -> Iterator[tuple[str, int]]:
    if isinstance(lag, FileLag):
        yield "files", lag.files
        yield "bytes", lag.bytes
    elif isinstance(lag, VersionLag):
        yield "versions", lag.versions
    elif lag is not None:
        yield "records", lag.records
