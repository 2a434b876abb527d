"""The files, and versions of Delta Lake, that the queries of a run have left to read: Spark does not report them."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.local_files import local_storage
from sqlstream.app.state.backlogs import Backlog, Pace, each_progress, source_backlogs
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.formats.formats import format_of
from sqlstream.state.batch_logs import DELTA, FILES
from sqlstream.state.progress.progress import QueryProgress, VersionProgress

INTERVAL_SECONDS = 5.0
"""How often checkpoints and folders are read."""

SourceBacklogs = Mapping[str, Mapping[str, Backlog]]
"""What is left to read, by model and source."""

logger = logging.getLogger("sqlstream.observers")


class Backlogs:
    """Reads the checkpoints of `models` and what these read, in a background thread. `report` gets a sentence once for
    each model in `needed` whose backlog is unknown.
    """

    def __init__(
        self, loaded: Loaded, models: Sequence[CompiledModel], needed: frozenset[str], report: Callable[[str], None]
    ) -> None:
        self._loaded, self._models, self._report = loaded, tuple(models), report
        self._needed = set(needed)
        self._left: SourceBacklogs = {}
        self._ended = threading.Event()

    def left(self) -> SourceBacklogs:
        """Returns what was left at the last reading. A model that has not started, or of which it is unknown, is not
        included.
        """
        return self._left

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads during the body."""
        thread = threading.Thread(target=self._work, name="backlogs", daemon=True)
        if self._models:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            if self._models:
                thread.join(INTERVAL_SECONDS)

    def _work(self) -> None:
        storage = local_storage(self._loaded)
        if storage is None:
            for model in self._models:
                self._report_unknown(model.name, "its checkpoint is not on the local file system")
            return
        pace, wait = Pace(INTERVAL_SECONDS), 0.0
        while not self._ended.wait(wait):
            pace.begin()
            try:
                for progress in each_progress(self._loaded, storage, self._models):
                    self._add(progress)
            except Exception:  # a thread beside the run must not end it
                logger.exception("the backlog of the queries was not read")
            wait = pace.end()

    def _add(self, progress: QueryProgress) -> None:
        version = _own_version(progress)
        if progress.problem is not None:
            self._report_unknown(progress.model, progress.problem)
        elif version is not None:
            found = source_backlogs(version)
            self._left = {**self._left, progress.model: found}
            listed = [source for source in version.sources if source.position.form in (FILES, DELTA)]
            unknown = [source for source in listed if source.lag is None]
            if unknown:
                self._report_unknown(progress.model, unknown[0].problem or f"only Spark can list {unknown[0].name}")

    def _report_unknown(self, model: str, reason: str) -> None:
        if model in self._needed:
            self._needed.remove(model)
            self._report(f"`lag_over` of {model} is incomplete: {reason}")


def _own_version(progress: QueryProgress) -> VersionProgress | None:
    """Returns the version that this process runs."""
    own = f"process {os.getpid()} "
    return next((version for version in progress.versions if (version.holder or "").startswith(own)), None)


def has_unreported_backlog(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether `model` is a query that reads files or a table of Delta Lake as a stream."""
    tables = compiled.tables_of(model.unique_id) if model.streaming and model.output is not None else ()
    return any(
        table.mode == "stream" and (table.format == "delta" or format_of(table.format).is_file) for table in tables
    )
