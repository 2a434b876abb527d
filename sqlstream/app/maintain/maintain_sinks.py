"""Maintains the outputs of queries: tables of Delta Lake and Iceberg, and the files of file sinks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from os.path import normpath

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded, load
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.maintain.maintain import Maintained, MaintainedSink, MaintainRequest, SinkSize
from sqlstream.app.session.session import spark_for
from sqlstream.app.session.target_storage import sink_path, storage_base, storage_location, versioned_output
from sqlstream.app.stored.stored_query import OutputFolder, StoredQuery, stored_query
from sqlstream.app.stored.stream_readers import streams_of
from sqlstream.app.versions.publications import names_of
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Place
from sqlstream.numbers import long_seconds_text, plural
from sqlstream.project.formats.formats import format_of
from sqlstream.project.wording import quoted_list
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.query_locks import query_in_use, query_lock
from sqlstream.spark.storage.storage import SessionStorages, storage_problems
from sqlstream.spark.writing.merged_files import Merging, archive_replaced
from sqlstream.spark.writing.quarantine import ids_of_query
from sqlstream.spark.writing.table_formats.maintenance import maintain_table, table_size
from sqlstream.spark.writing.table_formats.table import FormatTable, table_at
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.checkpoints import read_versions
from sqlstream.state.layout import checkpoint_path, published_folder, query_root
from sqlstream.state.lost_outputs import find_query_id
from sqlstream.state.merged_files import FORMATS, has_deletions, last_compact, small_folders
from sqlstream.state.output_files import OutputFiles
from sqlstream.state.small_files import LONG_LOG_BYTES, LongLog

CODE = "cannot-maintain"

RETAINED_SECONDS = 7 * 86400.0
"""How long the files that a merge has replaced stay, for readers that have listed them: as long as in Delta Lake."""


def maintain_sinks(request: MaintainRequest) -> Maintained:
    """Maintains the outputs of the current versions of the selected queries. Locks all of them before it changes one.

    Raises: FindingsError if the selection is invalid or has no query, a query runs, or a table cannot be maintained.
    """
    loaded = load(request.project)
    chosen, _ = select(loaded.compiled, request.selection)
    models, secrets = terminal_models(loaded.compiled, chosen), Secrets(request.project.env)
    notice = f"Starting Spark to maintain the outputs of {plural(len(models), 'query', 'queries')}"
    with spark_for(loaded, models, request.project, secrets, notice) as (runtime, signals), ExitStack() as locked:
        session = runtime.session
        findings: list[Finding] = []
        queries = []
        for model in models:
            try:
                queries.append(_locked(loaded, model, session, secrets, locked, changes=not request.dry_run))
            except FindingsError as error:
                findings += error.findings
        if findings:
            raise FindingsError(findings)
        done = []
        for query, confirm in queries:
            maintaining = _Maintaining(loaded, session, secrets, request, query, confirm)
            with storage_problems(query.root, storage_location(loaded, query.model), secrets):
                for sink in maintaining.run():
                    done.append(sink)
                    signals.check()
        return Maintained(tuple(done), request.dry_run)


def _locked(
    loaded: Loaded,
    model: CompiledModel,
    session: SparkSession,
    secrets: Secrets,
    locked: ExitStack,
    *,
    changes: bool,
) -> tuple[StoredQuery, Callable[[], None]]:
    """Returns the current version of a query, and a function that checks that it is still locked. Raises: FindingsError
    if it runs, or another command makes another version the current one.
    """
    query = stored_query(loaded, model, SessionStorages(session))
    if not changes or not query.state.version:
        return query, _unlocked
    lock = locked.enter_context(query_lock(query.storage, query.lock_root, model.name, model.file.location, secrets))
    again = stored_query(loaded, model, SessionStorages(session))  # what is read before the lock can be out of date
    if again.lock_root != query.lock_root:
        raise FindingsError(
            [query_in_use(model.name, "another command, which has switched versions,", model.file.location)]
        )
    return again, lock.confirm


def _unlocked() -> None:
    """Does nothing: a dry run changes nothing, so it locks nothing."""


@dataclass(frozen=True)
class _Maintaining:
    """Maintains the outputs of one query. `confirm` raises FindingsError if it is no longer locked."""

    loaded: Loaded
    session: SparkSession
    secrets: Secrets
    request: MaintainRequest
    query: StoredQuery
    confirm: Callable[[], None]

    def run(self) -> Iterator[MaintainedSink]:
        model, version = self.query.model, self.query.state.version
        folders = {folder.sink: folder for folder in self.query.outputs} if version else {}
        published = self.query.state.published
        outputs = [(use, versioned_output(self.loaded, use, version, published)) for use in model.outputs]
        beside = self.loaded.compiled.quarantine_outputs(model)
        outputs += [(use, versioned_output(self.loaded, use, 1, ())) for use in beside]
        for position, (use, path) in enumerate(outputs):
            found = MaintainedSink(model.name, use.sink, use.format, path)
            is_quarantine = position >= len(model.outputs)
            if not version:
                yield replace(found, left=("the query has not run yet",))
            elif format_of(use.format).is_table and path is not None:
                yield self._table(found, use, path)
            elif use.sink in folders and not is_quarantine:
                yield self._files(found, use, folders[use.sink])
            else:
                why = (
                    "each batch writes a folder" if format_of(use.format).is_file else "sqlstream does not maintain it"
                )
                yield replace(found, left=(why,))

    def _table(self, found: MaintainedSink, use: Output, path: str) -> MaintainedSink:
        """Compacts a table. Raises: FindingsError."""
        if use.table is not None:
            table = FormatTable(self.session, use.format, path)
        else:
            table = table_at(self.session, use.format, path=path)
        try:
            if not table.exists():
                return replace(found, left=("the table does not exist yet",))
            before = _size_of(table)
            if self.request.dry_run:
                return replace(found, before=before, after=before, done=(_PLANNED[use.format],))
            self.confirm()
            done = tuple(maintain_table(table, self.request.retain_seconds, self._known_queries()))
            return replace(found, before=before, after=_size_of(table), done=done)
        except SPARK_ERRORS as error:
            what = f"the table of `{found.model}` in sink `{use.sink}` cannot be maintained"
            place = Place(use.location)
            fix = "correct what the error names and repeat the command; the rows of the table are as before"
            finding = error_finding(error, code=CODE, what=what, place=place, secrets=self.secrets, fix=fix)
            raise FindingsError([finding]) from error

    def _known_queries(self) -> set[str]:
        """Returns the ids under which the queries with a checkpoint in the target write batches. Raises: OSError,
        Spark's errors.
        """
        base, storages = storage_base(self.loaded), self.query.storages
        models = self.loaded.compiled.models.values()
        roots = {query_root(base, model.query_id, model.config.checkpoint) for model in models if model.output}
        storage, folder = storages.of(f"{base}/queries")
        roots |= {f"{base}/queries/{name}" for name in storage.names(folder) if not name.startswith(".")}
        checkpoints = [
            checkpoint_path(root, version) for root in sorted(roots) for version in read_versions(storages.of, root)
        ]
        ids = (find_query_id(*storages.of(checkpoint)) for checkpoint in checkpoints)
        return {name for each in ids if each is not None for name in ids_of_query(each)}

    def _files(self, found: MaintainedSink, use: Output, folder: OutputFolder) -> MaintainedSink:
        """Merges the files of a file sink, and archives those that earlier merges have replaced. Raises: FindingsError,
        OSError, Spark's errors.
        """
        storage, path = self.query.storages.of(folder.path)
        found = replace(found, output=path)
        if folder.is_replaced:
            return replace(found, left=("each run or batch replaces its files",))
        log, files = read_sink_log(storage, path), self.query.files(folder)
        before = _size_in_log(log, files)
        found = replace(found, before=before, after=before)
        done: list[str] = []
        why = self._why_not_merged(use, folder, log)
        left: tuple[str, ...] = ()
        small = () if why else small_folders(log.texts[last_compact(log) or 0], files.committed)
        number = sum(len(each.names) for each in small)
        into = plural(sum(each.files_after for each in small), "file")
        if why is not None:
            left = (why,)
        elif not small:
            left = ("there are no small files to merge in the part of the log that Spark has compacted",)
        elif self.request.dry_run:
            done.append(f"would merge {plural(number, 'file')} into {into}")
        else:
            options = {name: value for name, value in use.options.items() if isinstance(value, str)}
            merging = Merging(self.session, storage, path, use.format, options, log)
            merged, left = merging.merge(small, self.confirm)
            if merged:
                done.append(f"merged {plural(merged, 'file')} into {into}" if not left else f"merged {merged} files")
        files = self.query.files(folder)
        retain = RETAINED_SECONDS if self.request.retain_seconds is None else self.request.retain_seconds
        shown = self._shown_folder(use) if isinstance(storage, LocalStorage) else None
        if shown is not None and not self.request.dry_run:
            self._keep_up(use)  # the log that readers see may still list the files
        moved, kept = archive_replaced(storage, path, files, retain, moves=not self.request.dry_run, shown=shown)
        if moved:
            would = "would move" if self.request.dry_run else "moved"
            done.append(f"{would} {plural(moved, 'replaced file')} to the archive")
        if kept:
            done.append(f"kept {plural(kept, 'replaced file')} for readers, for {long_seconds_text(retain)}")
        after = _size_in_log(read_sink_log(storage, path), files)
        if (after.log_bytes or 0) > LONG_LOG_BYTES:
            left = (*left, LongLog(use.sink, after.log_bytes or 0).text)
        return replace(found, after=after, done=tuple(done), left=left)

    def _shown_folder(self, use: Output) -> str | None:
        """Returns the folder that readers of a plain path see, None if they see the output itself."""
        if use.path is None or use.path not in self.query.state.published:
            return None
        return published_folder(normpath(sink_path(self.loaded, use.path)), self.query.state.version)

    def _keep_up(self, use: Output) -> None:
        """Shows readers of a plain path the batches after which a command was killed. Raises: OSError."""
        ledger = self.query.state.ledger
        names = names_of(self.query, self.request.project)
        for each in names.publications(ledger.identity) if ledger is not None else ():
            if each.name == use.path:
                each.keep_up(self.query.state.version)

    def _why_not_merged(self, use: Output, folder: OutputFolder, log: BatchLog) -> str | None:
        """Returns why the files of a file sink are not merged, None if they can be."""
        number = last_compact(log)
        if folder.format not in FORMATS or use.format != folder.format:
            return f"files of format {folder.format} are not merged, only those of {' and '.join(FORMATS)}"
        if use.path in self.query.state.published:
            return "its plain path shows readers a copy of the log of the current version"
        if any(name.lower() == "retention" for name in use.options):
            return "the sink has the option `retention`, which counts the age of each file"
        if not all(isinstance(value, str) for value in use.options.values()):
            return "the options of the sink have secrets"
        if number is None:
            return "Spark has not compacted the log yet, which it does in each tenth batch"
        if has_deletions(log.texts[number]):
            return "the log has deleted files, which only an earlier Spark writes"
        readers = streams_of(self.loaded, self.query.model, use, folder.path)
        if readers:
            verb = "reads" if len(readers) == 1 else "read"
            return f"{quoted_list(readers)} {verb} the files as a stream, and would read merged rows again"
        if not self.request.merges_files:
            return "its files are merged only with --merge-files"
        return None


def _size_of(table: FormatTable) -> SinkSize:
    size = table_size(table)
    return SinkSize(size.files, size.bytes)


def _size_in_log(log: BatchLog, files: OutputFiles) -> SinkSize:
    """Returns the size of an output and of the entries of its log that readers read."""
    log_bytes = sum(len(text.encode()) for text in log.texts.values())
    return SinkSize(len(files.committed), sum(file.size for file in files.committed), log_bytes)


_PLANNED = {
    "delta": "would run OPTIMIZE and VACUUM",
    "iceberg": "would run rewrite_data_files, rewrite_manifests and expire_snapshots",
}
