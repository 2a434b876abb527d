"""The stored files of a query: its versions, its checkpoint, its output.

Spark starts only if a path needs it. Local folders need no Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.session import spark_session
from sqlstream.app.session.signals import StopSignals, stop_signals
from sqlstream.app.session.target_storage import sink_path, storage_base, storage_location
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import did_you_mean
from sqlstream.spark.reading.sources import TABLE
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import read_commits, read_sink_log
from sqlstream.spark.storage.local import local_path, storage_without_spark
from sqlstream.spark.storage.storage import SessionStorages, Storage, storage_problems
from sqlstream.spark.writing.catalog_tables import table_folder
from sqlstream.state.checkpoints import CheckpointState, read_checkpoint, read_version, read_versions
from sqlstream.state.layout import checkpoint_path, output_table, query_root, version_root
from sqlstream.state.output_files import OutputFiles, batch_output, log_problem, sort_files
from sqlstream.state.query_versions import versioned_path


class LazyStorages:
    """The storages of a target. Spark starts for the first path that may not be local, with the connectors of the query
    of `model`.
    """

    def __init__(
        self, loaded: Loaded, request: ProjectRequest, signals: StopSignals, stack: ExitStack, model: CompiledModel
    ) -> None:
        self._loaded, self._request, self._signals, self._stack = loaded, request, signals, stack
        self._model = model

    def of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage of `path`, and `path` in the form that this storage accepts."""
        settings = self._loaded.compiled.project.target.spark
        return storage_without_spark(path, settings, self._request.env) or self._of_session.of(path)

    def exists(self, uri: str) -> bool:
        """Returns whether a file exists; `uri` is encoded as in Spark's logs (`%20` for a space)."""
        local = local_path(uri)
        return self._of_session.exists(uri) if local is None else local.exists()

    @cached_property
    def _of_session(self) -> SessionStorages:
        return SessionStorages(self.session)

    @cached_property
    def session(self) -> SparkSession:
        """The Spark session, which starts on first use. Raises: FindingsError."""
        starting = spark_session(self._loaded, Secrets(self._request.env), self._signals, [self._model.unique_id])
        return self._stack.enter_context(starting).session

    def start(self) -> SparkSession:
        """Returns the session. Raises: FindingsError."""
        return self.session


@dataclass(frozen=True)
class OutputFolder:
    """A folder of files to which a query writes. `is_replaced`: the query replaces all files, and keeps no log."""

    sink: str
    format: str
    path: str
    is_replaced: bool


@dataclass(frozen=True)
class StoredQuery:
    """One version of a model's query. All versions are under `root` in `storage`. `state.version` is 0 before the first
    run.
    """

    loaded: Loaded
    model: CompiledModel
    storages: LazyStorages | SessionStorages
    storage: Storage
    root: str
    state: CheckpointState

    @property
    def checkpoint(self) -> str:
        """The path of the checkpoint."""
        return checkpoint_path(self.root, self.state.version)

    @property
    def lock_root(self) -> str:
        """The path to lock for the version."""
        return version_root(self.root, self.state.version)

    @cached_property
    def outputs(self) -> tuple[OutputFolder, ...]:
        """The output folders of this version, from its ledger. A sink without files has none."""
        version = max(self.state.version, 1)
        found = (replace(use, path=self._folder(use, version)) for use in self._uses())
        return tuple(folder for folder in found if folder.path)

    def _uses(self) -> list[OutputFolder]:
        """Returns the sinks with their declared paths or tables."""
        model, ledger = self.model, self.state.ledger
        if ledger is not None:
            names = [model.outputs[0].sink, *(use.sink for use in ledger.identity.also)]
            uses = zip(names, ledger.identity.by_sink, strict=True)
            return [
                OutputFolder(name, use.sink_format, use.sink_path or "", use.batch or use.writes_snapshots)
                for name, use in uses
            ]
        return [
            OutputFolder(use.sink, use.format, use.path or "", not model.streaming or model.writes_snapshots_to(use))
            for use in model.outputs
        ]

    def _folder(self, use: OutputFolder, version: int) -> str:
        if use.path and use.format == TABLE:
            table = output_table(use.path, version, is_published=use.path in self.state.published)
            return table_folder(self.storages.session, table) or ""
        if not use.path or not format_of(use.format).writes_files:
            return ""
        return versioned_path(sink_path(self.loaded, use.path), version, is_published=use.path in self.state.published)

    def files(self, output: OutputFolder) -> OutputFiles:
        """Returns the files in the folder `output`.

        Raises: FindingsError if the committed files cannot be determined; OSError, Spark's errors.
        """
        storage, path = self.storages.of(output.path)
        stored = storage.files(path)  # before the log: see sort_files
        if output.is_replaced:
            return batch_output(stored)
        committed = read_commits(*self.storages.of(self.checkpoint)).last
        log = read_sink_log(storage, path)
        problem = log_problem(self.model.name, log, committed, self.model.file.location)
        if problem is not None:
            raise FindingsError([problem])
        options = next((use.options for use in self.model.outputs if use.sink == output.sink), {})
        return sort_files(stored, log, with_retention="retention" in map(str.lower, options))


@contextmanager
def open_query(loaded: Loaded, request: ProjectRequest, name: str, version: int | None = None) -> Iterator[StoredQuery]:
    """Yields a version of the query of the terminal model `name`, by default the current one. Stops Spark at the end.

    Raises: FindingsError, also for storage errors in the body; UsageError if `name` is not a terminal model, or the
    version does not exist.
    """
    model = terminal_model(loaded, name)
    problems = storage_problems(_wanted_root(loaded, model), storage_location(loaded, model), Secrets(request.env))
    with stop_signals() as signals, ExitStack() as stack, problems:
        yield stored_query(loaded, model, LazyStorages(loaded, request, signals, stack, model), version)


def stored_query(
    loaded: Loaded, model: CompiledModel, storages: LazyStorages | SessionStorages, version: int | None = None
) -> StoredQuery:
    """Returns a version of the query of a terminal model, by default the current one.

    Raises: OSError, Spark's errors; UsageError if the version does not exist.
    """
    storage, root = storages.of(_wanted_root(loaded, model))
    return StoredQuery(loaded, model, storages, storage, root, _state(storages, root, model.name, version))


def _wanted_root(loaded: Loaded, model: CompiledModel) -> str:
    return query_root(storage_base(loaded), model.query_id, model.config.checkpoint)


def _state(storages: LazyStorages | SessionStorages, root: str, name: str, version: int | None) -> CheckpointState:
    if version is None:
        return read_checkpoint(storages.of, root)
    known = read_versions(storages.of, root)
    if version not in known:
        versions = ", ".join(map(str, known)) if known else "none yet"
        raise UsageError(f"`{name}` has no version {version}; stored versions: {versions}")
    return read_version(storages.of, root, version)


def terminal_model(loaded: Loaded, name: str) -> CompiledModel:
    """Returns the terminal model `name`. Raises: UsageError if there is none."""
    model = loaded.compiled.model_named(name)
    if model is None:
        terminal = [each.name for each in loaded.compiled.models.values() if each.output is not None]
        raise UsageError(f"there is no terminal model `{name}`; {did_you_mean(name, terminal)}")
    if model.output is None:
        raise UsageError(f"`{name}` is a view: it has no sink, so it has no checkpoint or output")
    return model
