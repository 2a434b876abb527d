"""The backlog of running queries whose batches do not report it, from their checkpoints and sources."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlstream.app.planning.local_files import local_storage
from sqlstream.app.state.backlogs import Backlog, Pace, source_backlogs, total
from sqlstream.app.state.progress import progress_without_spark
from sqlstream.app.ui.live_query import LiveQuery
from sqlstream.app.ui.project_view import SeenProject

INTERVAL_SECONDS = 20.0
"""How often checkpoints are read."""


class CheckpointLags:
    """Reads checkpoints from time to time."""

    def __init__(self) -> None:
        self._paces: dict[str | None, Pace] = {}

    def read(self, seen: SeenProject, live: Mapping[str, LiveQuery]) -> Iterator[tuple[str, Backlog | None]]:
        """Yields the backlog of each running query, if it is time to read them again."""
        pace = self._paces.setdefault(seen.target, Pace(INTERVAL_SECONDS))
        storage = None if seen.loaded is None else local_storage(seen.loaded)
        if seen.loaded is None or storage is None or not pace.begin():
            return
        models = [
            model
            for model in seen.loaded.compiled.models.values()
            if model.streaming and model.name in live and live[model.name].is_running
        ]
        for model in models:
            (progress,) = progress_without_spark(seen.loaded, storage, [model])
            running = [each for each in progress.versions if each.position.version == live[model.name].version]
            yield model.name, total(source_backlogs(running[0])) if running else None
        pace.end()
