"""The files, and versions of Delta Lake, that the queries of a run have left to read: Spark does not report them."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.local_files import local_storage
from sqlstream.app.state.backlogs import Pace, source_backlogs
from sqlstream.app.state.progress import progress_without_spark
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.formats.formats import format_of
from sqlstream.state.batch_logs import DELTA, FILES
from sqlstream.state.progress.progress import QueryProgress, VersionProgress
from sqlstream.state.runs.backlog import Unread

INTERVAL_SECONDS = 5.0
"""How often checkpoints and folders are read."""

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
        self._unread: Mapping[str, Unread] = {}
        self._ended = threading.Event()

    def unread(self) -> Mapping[str, Unread]:
        """Returns what each model had left at the last reading. Models that have not started are not included."""
        return self._unread

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
                for model in self._models:
                    at = time.time()
                    (progress,) = progress_without_spark(self._loaded, storage, [model])
                    self._add(progress, at)
            except Exception:  # a thread beside the run must not end it
                logger.exception("the backlog of the queries was not read")
            wait = pace.end()

    def _add(self, progress: QueryProgress, at: float) -> None:
        version = _own_version(progress)
        if progress.problem is not None:
            self._report_unknown(progress.model, progress.problem)
        elif version is not None:
            found = source_backlogs(version)
            self._unread = {**self._unread, progress.model: Unread(at, found)}
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
