"""The lag of the queries of a run in files and versions of Delta Lake, which Spark does not report. Alerts, exported
metrics and the journal have it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.target_storage import readable_storage
from sqlstream.app.status.lags import ProgressReader
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.storage.processes import is_this_process
from sqlstream.state.batch_logs import DELTA, FILES
from sqlstream.state.checkpoints import read_versions
from sqlstream.state.sources.lag import MeasuredLag, Pace, VersionProgress, source_lags

INTERVAL_SECONDS = 5.0
"""How often checkpoints and folders are read."""

_FORMS = {"files": FILES, "bytes": FILES, "versions": DELTA}
"""The kind of source that has each unit."""

logger = logging.getLogger("sqlstream.observers")


class LagReader:
    """Reads the checkpoints of `models` and what these read, in a background thread. `needed` are the units of rules
    `lag_over` by model. `report` gets a sentence once for each rule that cannot be measured, and `keep` the first lag
    that is read after a batch, until it returns true; both are called in that thread.
    """

    def __init__(
        self,
        loaded: Loaded,
        models: Sequence[CompiledModel],
        needed: Mapping[str, str],
        report: Callable[[str], None],
        keep: Callable[[str, MeasuredLag], bool],
    ) -> None:
        self._loaded, self._models, self._report, self._keep = loaded, tuple(models), report, keep
        self._needed = dict(needed)
        self._kept: dict[str, int | None] = {}
        self._failed: set[str] = set()
        self._lags: Mapping[str, MeasuredLag] = {}
        self._ended = threading.Event()

    def lags(self) -> Mapping[str, MeasuredLag]:
        """Returns the lag of each model at the last reading. Models that have not started are not included."""
        return self._lags

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Reads during the body."""
        work = copy_context().run  # its log records belong to this run
        thread = threading.Thread(target=work, args=(self._work,), name="lags", daemon=True)
        if self._models:
            thread.start()
        try:
            yield
        finally:
            self._ended.set()
            if self._models:
                thread.join(INTERVAL_SECONDS)
            # a slow file system may still hold the thread
            self._report, self._keep = lambda _text: None, lambda _model, _lag: True

    def _work(self) -> None:
        pace, wait = Pace(INTERVAL_SECONDS), 0.0
        while not self._ended.wait(wait):
            pace.begin()
            for model in self._models:
                if self._ended.is_set():
                    return
                self._try(model)
            wait = pace.end()

    def _try(self, model: CompiledModel) -> None:
        try:
            self.read(model)
        except OSError as error:
            self._report_unknown(model.name, str(error))
        except Exception:  # a thread beside the run must not end it
            if model.name not in self._failed:
                logger.exception("the lag of %s was not read", model.name)
            self._failed.add(model.name)

    def read(self, model: CompiledModel) -> None:
        """Reads what the version of `model` that this process runs has left. Raises: OSError."""
        storage = readable_storage(self._loaded)
        root = "" if storage is None else storage.root_of(model)
        if storage is None or storage.local_path(root) is None:
            self._report_unknown(model.name, "its checkpoint is not on the local file system")
            return
        reader, at = ProgressReader(self._loaded, storage.base, storage.of), time.time()
        versions = reversed(tuple(read_versions(storage.of, root)))
        own = next((each for each in versions if is_this_process(reader.holder(model, each))), None)
        if own is not None:
            self._add(model.name, reader.version(model, own), at)

    def _add(self, model: str, version: VersionProgress, at: float) -> None:
        lag = MeasuredLag(at, source_lags(version), version.position.batch)
        self._lags = {**self._lags, model: lag}
        is_known = lag.batch is None or self._kept.get(model) == lag.batch
        if lag.sources and not is_known and self._keep(model, lag):
            self._kept[model] = lag.batch
        form = _FORMS.get(self._needed.get(model, ""))
        unknown = [each for each in version.sources if each.position.form == form and each.lag is None]
        if unknown:
            self._report_unknown(model, unknown[0].problem or f"only Spark can list what is new in {unknown[0].name}")

    def _report_unknown(self, model: str, reason: str) -> None:
        if self._needed.pop(model, None) is not None:
            self._report(f"`lag_over` of {model} cannot be measured: {reason}; use `no_rows_for` or `watermark_behind`")


def has_unreported_lag(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether `model` is a query that reads files or a table of Delta Lake as a stream."""
    tables = compiled.tables_of(model.unique_id) if model.streaming and model.output is not None else ()
    return any(
        table.mode == "stream" and (table.format == "delta" or format_of(table.format).is_file) for table in tables
    )
