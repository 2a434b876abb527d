"""The backlog of running queries whose batches do not report it, from their checkpoints and sources."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from sqlstream.app.planning.local_files import local_storage
from sqlstream.app.state.progress import progress_without_spark
from sqlstream.app.ui.live_query import LiveQuery
from sqlstream.app.ui.project_view import SeenProject
from sqlstream.state.progress.lag import FileLag, Lag, VersionLag
from sqlstream.state.progress.progress import QueryProgress

INTERVAL_SECONDS = 20.0
"""How often checkpoints are read."""

SHARE = 20
"""Reading takes at most one part in so many of the time."""


class CheckpointLags:
    """Reads checkpoints from time to time, and less often if that is slow."""

    def __init__(self) -> None:
        self._next: dict[str | None, float] = {}

    def read(self, seen: SeenProject, live: Mapping[str, LiveQuery]) -> Iterator[tuple[str, dict[str, int] | None]]:
        """Yields the backlog of each running query whose last batch has none, if it is time to read them again."""
        began = time.monotonic()
        storage = None if seen.loaded is None else local_storage(seen.loaded)
        if seen.loaded is None or storage is None or began < self._next.get(seen.target, 0.0):
            return
        models = [
            model
            for model in seen.loaded.compiled.models.values()
            if model.streaming and model.name in live and live[model.name].is_running
        ]
        for model in models:
            for progress in progress_without_spark(seen.loaded, storage, [model]):
                yield model.name, _backlog(progress)
        self._next[seen.target] = time.monotonic() + max(INTERVAL_SECONDS, SHARE * (time.monotonic() - began))


def _backlog(progress: QueryProgress) -> dict[str, int] | None:
    """Returns what the current version of a query has not read yet, by unit; None if unknown."""
    found: dict[str, int] = {}
    for version in progress.versions[:1]:
        for source in version.sources:
            for unit, count in _counts(source.lag):
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
