"""Switches the plain names of a query's outputs to another version, and completes a switch that was interrupted; says
where readers find the versions of a query.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os.path import normpath

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import sink_path, storage_base
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.app.versions.stored_versions import QueryHistory, stored_versions
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.outputs import stored_inputs
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.publication.database_views import TablePublication
from sqlstream.spark.publication.folders import FolderPublication
from sqlstream.spark.publication.publication import CannotPublishError, NotWrittenError, Publication
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import StorageOf
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.locks import LockedError
from sqlstream.spark.storage.query_locks import folder_lock
from sqlstream.spark.storage.storage import Storage
from sqlstream.spark.writing.writers import is_known_database, plain_table
from sqlstream.state.checkpoints import CheckpointState, read_version, read_versions, read_versions_file
from sqlstream.state.layout import query_root, version_root, versions_path
from sqlstream.state.ledger import Ledger, QueryIdentity
from sqlstream.state.query_versions import Versions
from sqlstream.state.runs.lease_rules import holder_text


@dataclass(frozen=True)
class QueryNames:
    """The plain names of the outputs of a query, whose versions are under `root` in `storage`. `session` starts Spark
    if it does not run yet. `holds` returns whether this process has locked the version in a folder.
    """

    loaded: Loaded
    model: CompiledModel
    storage: Storage
    root: str
    storage_of: StorageOf
    secrets: Secrets
    session: Callable[[], SparkSession]
    holds: Callable[[str], bool] = lambda _: False

    def publications(self, identity: QueryIdentity) -> list[Publication]:
        """Returns the plain names of the outputs of a version, as far as they can show readers another version."""
        found = (self._publication(use) for use in identity.by_sink)
        return [each for each in found if each is not None]

    def _publication(self, use: QueryIdentity) -> Publication | None:
        """Returns the plain name of one sink by the kind of its output, None if it always names the same version."""
        name = use.sink_path
        if name is not None and format_of(use.sink_format).is_database:
            return self._table(name)
        if name is None or not self._writes_folder(use.sink_format, name):
            return None
        storage, path = self.storage_of(sink_path(self.loaded, name))
        return FolderPublication(name, normpath(path), self._paths) if isinstance(storage, LocalStorage) else None

    @cached_property
    def _paths(self) -> frozenset[str]:
        """The paths of all outputs of the project."""
        base, models = storage_base(self.loaded), self.loaded.compiled.models.values()
        return frozenset(plain_path(base, output.path) for model in models for output in model.outputs if output.path)

    def _table(self, name: str) -> Publication | None:
        output = next((each for each in self.model.outputs if name in (each.path, each.database_table)), None)
        if output is None or not is_known_database(output, self.secrets):
            return None
        path = name if output.path is None else sink_path(self.loaded, name)
        database = partial(plain_table, output, path, self.model.query_id, self.session, self.secrets)
        return TablePublication(name, path, database, self.model)

    def _writes_folder(self, sink_format: str, name: str) -> bool:
        is_delta_path = sink_format == "delta" and any(output.path == name for output in self.model.outputs)
        return is_delta_path or format_of(sink_format).writes_files

    def has_rows(self, parts: Versions) -> bool:
        """Returns whether the current version has written its output."""
        return self._used_identity(parts.current) is not None

    def behind(self, parts: Versions) -> list[Publication]:
        """Returns the plain names that do not show the current version, although it has written its output."""
        identity = None if parts.published is None else self._used_identity(parts.current)
        if identity is None:
            return []
        return [each for each in self.publications(identity) if not self.shows(parts, each)]

    def shows(self, parts: Versions, publication: Publication) -> bool:
        """Returns whether readers find the current version under the plain name."""
        if publication.name not in (parts.published or ()):
            return parts.current == 1  # it still writes to the plain name
        return publication.is_shown(parts.current)

    def outputs(self, parts: Versions, state: CheckpointState) -> tuple[tuple[str, str], ...]:
        """Returns where readers find the outputs of a version: the name of each sink with a path or table, which is the
        plain name if that shows this version.
        """
        ledger = state.ledger
        if ledger is None:
            return ()
        known = self.publications(ledger.identity) if state.version == parts.current else []
        shown = {each.name: each.path for each in known if self._shows_in_ledger(parts, each)}
        by_path = {output.sink_path: output.sink for output in reversed(self.model.outputs)}
        first = by_path.get(ledger.identity.sink_path, self.model.outputs[0].sink)  # the ledger has only its path
        sinks = (first, *(use.sink for use in ledger.identity.also))
        written = zip(sinks, ledger.identity.by_sink, (ledger.output, *ledger.also), strict=True)
        paths = ((sink, shown.get(use.sink_path or "", path)) for sink, use, path in written)
        return tuple((sink, path) for sink, path in paths if path is not None)

    def _shows_in_ledger(self, parts: Versions, publication: Publication) -> bool:
        """Returns whether readers find the current version under the plain name, as `versions.json` says it of tables:
        a connection to a database may need Spark.
        """
        if isinstance(publication, TablePublication):
            return publication.name in (parts.published or ())
        return self.shows(parts, publication)

    def _used_identity(self, version: int) -> QueryIdentity | None:
        """Returns the identity of a version that has written its output."""
        state = read_version(self.storage_of, self.root, version)
        if state.ledger is None or not (state.is_used or state.ledger.identity.batch):
            return None
        return state.ledger.identity

    def switch(self, parts: Versions) -> tuple[Versions, tuple[str, ...]]:
        """Makes `parts` the parts of the query, and their current version the one that readers see. The caller has
        locked the versions of the query. Returns the parts with all names that show the current version, and why others
        cannot.

        Can be repeated after an interruption. Raises: FindingsError if a query has to stop first; OSError, Spark's
        errors.
        """
        identity = self._used_identity(parts.current)
        names = self.publications(identity) if identity else []
        known = parts.published or ()
        if parts.current == 1:
            names = [each for each in names if each.name in known]  # it writes to the others itself
        first = [each for each in names if each.name not in known]
        with ExitStack() as locks:
            if first:
                self._lock_users(locks, first)
            prepared, problems = _prepare(names, parts.current, known)
            published = dict.fromkeys((*known, *(each.name for each in prepared)))
            parts = replace(parts, published=tuple(published))
            # Readers notice nothing of what comes before this file. What comes after it, the next command repeats.
            if parts != read_versions_file(self.storage_of, self.root):
                self.storage.write_text(versions_path(self.root), parts.to_json())
            for each in prepared:
                each.switch_to(parts.current)
        return parts, problems

    def _lock_users(self, locks: ExitStack, first: Sequence[Publication]) -> None:
        """Locks the queries that use plain names so far: version 1 of this query, and readers of its stored output.
        Neither can change to another name while it runs. Raises: FindingsError.
        """
        paths = {each.path for each in first}
        if 1 in read_versions(self.storage_of, self.root):
            self._lock(locks, self.storage, version_root(self.root, 1), partial(self._is_running, first))
        for reader, storage, root in self._readers(paths):
            self._lock(locks, storage, root, partial(self._is_read, reader, first))

    def _lock(self, locks: ExitStack, storage: Storage, root: str, problem: Callable[[str], Finding]) -> None:
        if self.holds(root):
            return
        try:
            locks.enter_context(folder_lock(storage, root))
        except LockedError as error:
            raise FindingsError([problem(str(error))]) from error

    def _readers(self, paths: set[str]) -> Iterator[tuple[CompiledModel, Storage, str]]:
        """Yields the queries that read this one's stored output at `paths`, with the folders of their versions."""
        compiled, base = self.loaded.compiled, storage_base(self.loaded)
        for reader in compiled.models.values():
            if reader.output is None or self.model.name not in stored_inputs(compiled, reader):
                continue
            storage, root = self.storage_of(query_root(base, reader.query_id, reader.config.checkpoint))
            parts = read_versions_file(self.storage_of, root)
            for version in {parts.current, parts.parallel or 0} - {0}:
                ledger = read_version(self.storage_of, root, version).ledger
                if ledger is not None and self._reads(ledger, paths):
                    yield reader, storage, version_root(root, version)

    def _reads(self, ledger: Ledger, paths: set[str]) -> bool:
        uses = [use.path for use in ledger.identity.sources if use.stored and use.table == self.model.name]
        return any(normpath(self.storage_of(path)[1]) in paths for path in uses if path is not None)

    def _is_running(self, first: Sequence[Publication], holder: str) -> Finding:
        name, (plain, moved) = self.model.name, first[0].first_move
        return Finding(
            "query-in-use",
            f"version 1 of `{name}` is running",
            f"{holder_text(holder)} writes to {plain}; the first switch moves that output to {moved} and makes {plain} "
            "show the current version",
            "stop that run and repeat the command; nothing has changed so far",
            self.model.file.location,
        )

    def _is_read(self, reader: CompiledModel, first: Sequence[Publication], holder: str) -> Finding:
        plain, _ = first[0].first_move
        return Finding(
            "query-in-use",
            f"the query of `{reader.name}` reads the stored output of `{self.model.name}`, and is running",
            f"{holder_text(holder)} reads {plain}; the first switch makes {plain} show the current version, so this "
            "run would mix the rows of two versions",
            f"stop that run, repeat the command, then start over: "
            f"`sqlstream run --full-refresh --select {reader.name}`",
            reader.file.location,
        )


def names_of(query: StoredQuery, request: ProjectRequest) -> QueryNames:
    """Returns the plain names of a stored query, for a command that is no run."""
    secrets = Secrets(request.env)
    return QueryNames(
        query.loaded, query.model, query.storage, query.root, query.storages.of, secrets, query.storages.start
    )


def _prepare(
    names: Sequence[Publication], version: int, known: Sequence[str]
) -> tuple[list[Publication], tuple[str, ...]]:
    """Returns the names that are ready for the switch, and why others are not. Raises: OSError, Spark's errors."""
    prepared, problems = [], []
    for each in names:
        try:
            each.prepare(version, is_first=each.name not in known)
        except NotWrittenError:
            continue
        except CannotPublishError as error:
            problems.append(f"{each.path} cannot show version {version}: {error}")
        else:
            prepared.append(each)
    return prepared, tuple(problems)


def query_history(request: ProjectRequest, name: str) -> QueryHistory:
    """Returns the stored versions of the query of the terminal model `name`, the newest last. Writes nothing.

    Raises: FindingsError for errors of the storage; UsageError if `name` is not a terminal model.
    """
    with open_query(load_for_reading(request), request, name) as query:
        names = names_of(query, request)

        def output_of(parts: Versions, state: CheckpointState) -> str | None:
            has_output = state.ledger is not None and state.ledger.output is not None
            return next((path for _, path in names.outputs(parts, state)), None) if has_output else None

        return stored_versions(query.storages.of, query.root, name, output_of)
