"""The progress of queries from their checkpoints and ledgers. Starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sqlstream.app.loading.load import Loaded
from sqlstream.app.session.target_storage import ReadableStorage, versioned_output
from sqlstream.app.stored.local_sources import files_at, has_local_files, is_local_path
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.state.backfills import BackfillLog, TimeRange, backfills_path, readable_backfills, unread_history
from sqlstream.state.batch_logs import DELTA, FILES, KAFKA
from sqlstream.state.checkpoints import read_versions, read_versions_file
from sqlstream.state.layout import lease_path, lock_path, query_root, version_root
from sqlstream.state.quarantined_rows import count_of_version, waiting_rows
from sqlstream.state.query_versions import Versions
from sqlstream.state.runs.lease_rules import lease_holder
from sqlstream.state.small_files import FilesOfSink, files_of_sink
from sqlstream.state.sources.lag import (
    Lag,
    PartitionOffsets,
    QueryProgress,
    SourceProgress,
    VersionLag,
    VersionProgress,
    delta_lag,
    file_lag,
    newest_version,
)
from sqlstream.state.sources.positions import DatedFilesOf, SourcePosition, read_position
from sqlstream.state.sources.source_files import file_choice, has_read_changes, local_path, unread_files

KafkaLag = Callable[[CompiledModel, SourceTable, PartitionOffsets], Lag]
"""Returns the lag of a Kafka source that a model reads, from the offsets of its query. Raises: LagUnknownError."""


class LagUnknownError(Exception):
    """The lag of a source cannot be read; the message is the reason in one line."""


@dataclass(frozen=True)
class ProgressReader:
    """Reads the progress of the queries in `storage`, an absolute path or URI. `kafka_lag` asks the brokers, None if
    there is no Spark that could.
    """

    loaded: Loaded
    storage: str
    files_of: DatedFilesOf
    kafka_lag: KafkaLag | None = None

    def read(self, model: CompiledModel) -> QueryProgress:
        """Returns the progress of the query of `model`. Raises: OSError, Spark's errors."""
        root = self._root(model)
        stored = tuple(read_versions(self.files_of, root))
        parts = read_versions_file(self.files_of, root)
        versions = []
        if parts.current in stored:
            current = self.version(model, parts.current)
            versions.append(replace(current, sinks=self._sinks(model, parts)))
        if parts.parallel in stored and parts.parallel is not None:
            versions.append(replace(self.version(model, parts.parallel), is_parallel=True))
        if parts.previous in stored and parts.previous is not None and self.holder(model, parts.previous):
            versions.append(replace(self.version(model, parts.previous), is_previous=True))
        return QueryProgress(model.name, model.unique_id, root, stored, tuple(versions))

    def version(self, model: CompiledModel, version: int) -> VersionProgress:
        """Returns the progress of one version of the query of `model`. Raises: OSError, Spark's errors."""
        root = self._root(model)
        position = read_position(self.files_of, root, version)
        tables = {table.full_name: table for table in self.loaded.compiled.tables_of(model.unique_id)}
        files, folder = self.files_of(root)
        log = readable_backfills(files.read_text(backfills_path(folder, version)))
        sources = (self._source(model, source, tables, log) for source in position.sources)
        rows = None
        if model.quarantine_tests:
            rows = waiting_rows(files.read_text(count_of_version(folder, version)), log, position.batch)
        return VersionProgress(position, tuple(sources), holder=self.holder(model, version), quarantined_rows=rows)

    def _sinks(self, model: CompiledModel, parts: Versions) -> tuple[FilesOfSink, ...]:
        """Returns the sinks to which the current version adds files. Raises: OSError, Spark's errors."""
        found = []
        for output in model.outputs:
            path = versioned_output(self.loaded, output, parts.current, parts.published or ())
            is_logged = format_of(output.format).writes_files and model.streaming
            if path is None or not is_logged or model.writes_snapshots_to(output):
                continue
            found.append(files_of_sink(output.sink, output.format, *self.files_of(path)))
        return tuple(found)

    def holder(self, model: CompiledModel, version: int) -> str | None:
        """Returns the process that has locked a version of the query of `model`, None if there is none.

        Raises: OSError, Spark's errors.
        """
        root = version_root(self._root(model), version)
        local = plain_path("/", root)
        if local.startswith("/"):
            from sqlstream.spark.storage.locks import lock_holder  # slow to import

            holder = lock_holder(Path(lock_path(local)))
            if holder is not None:
                return holder
        files, lease = self.files_of(lease_path(root))
        return lease_holder(files.names(lease), lambda name: files.read_text(f"{lease}/{name}"))

    def _root(self, model: CompiledModel) -> str:
        return query_root(self.storage, model.query_id, model.config.checkpoint)

    def _source(
        self,
        model: CompiledModel,
        position: SourcePosition,
        tables: dict[str, SourceTable],
        log: BackfillLog,
    ) -> SourceProgress:
        use = position.use
        table = tables.get(use.table) if use is not None else None
        if table is None:
            return SourceProgress(position)
        try:
            return SourceProgress(position, self._lag(model, position, table, log))
        except (LagUnknownError, OSError) as error:
            return SourceProgress(position, None, str(error))

    def _lag(self, model: CompiledModel, position: SourcePosition, table: SourceTable, log: BackfillLog) -> Lag | None:
        path = (position.use.path if position.use is not None else None) or ""
        if position.form == FILES or (position.offset is None and format_of(table.format).is_file):
            return self._file_lag(position, table, path, log)
        if position.form == DELTA and "/" in path:
            files, folder = self.files_of(path)
            newest = newest_version(files.names(f"{folder}/_delta_log"))
            if newest is None:
                return None
            lag = delta_lag(position.offset, newest)
            is_read = table.reads_changes and has_read_changes(files, folder, position.offset)
            return VersionLag(lag.versions - 1) if is_read else lag
        if position.form == KAFKA and self.kafka_lag is not None:
            return self.kafka_lag(model, table, position.offset)
        return None

    def _file_lag(self, position: SourcePosition, table: SourceTable, path: str, log: BackfillLog) -> Lag | None:
        choice = file_choice(table.options)
        read = {} if position.offset is None else position.read
        if choice is None or read is None or not self._has_files(path, read):
            return None
        found = files_at(plain_path("/", path), choice, self.loaded.compiled.project.root)
        if found is None:
            return None
        too_old = unread_history(found, read, choice, TimeRange(), log.histories(position.key))
        return file_lag(unread_files(found, read, choice), len(too_old))

    def _has_files(self, path: str, read: Mapping[str, int]) -> bool:
        """Returns whether `path` is on this machine: what was `read` there decides, otherwise the target."""
        if read:
            return is_local_path(path) and all(local_path(uri) is not None for uri in read)
        return is_local_path(path) and has_local_files(self.loaded.compiled.project.target)


def progress_without_spark(storage: ReadableStorage, models: Sequence[CompiledModel]) -> tuple[QueryProgress, ...]:
    """Returns the progress of the queries of `models`, whose checkpoints are in `storage`. Those that cannot be read
    have a `problem`.
    """
    reader = ProgressReader(storage.loaded, storage.base, storage.of)
    return tuple(_read(storage, reader, model) for model in models)


def _read(storage: ReadableStorage, reader: ProgressReader, model: CompiledModel) -> QueryProgress:
    root = storage.root_of(model)
    if not storage.can_read(root):
        return unreadable(model, root, f"its checkpoint is in {root}, which only Spark can read: add --check")
    try:
        return reader.read(model)
    except OSError as error:
        return unreadable(model, root, str(error))


def unreadable(model: CompiledModel, root: str, problem: str) -> QueryProgress:
    """Returns the progress of a query whose storage cannot be read."""
    return QueryProgress(model.name, model.unique_id, root, problem=problem)
