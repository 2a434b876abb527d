"""`sqlstream promote` and `sqlstream rollback`: make another version of a query the current one."""

from __future__ import annotations

from collections.abc import Callable

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.stored_query import StoredQuery, open_query
from sqlstream.app.running.versions import write_versions
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.query_locks import versions_lock
from sqlstream.state.checkpoints import read_version, read_versions_file
from sqlstream.state.plan import CheckpointState
from sqlstream.state.refusals import parallel_command
from sqlstream.state.results.switched import Switched
from sqlstream.state.versions.versions import Versions


def promote(request: ProjectRequest, name: str) -> Switched:
    """Makes the version that runs beside the current one the current version of the terminal model `name`.

    Queries that run go on. Raises: FindingsError if that version has committed no batch, or for errors of the storage;
    UsageError if there is none, or `name` is not a terminal model.
    """
    missing = f"`{name}` has no parallel version; {parallel_command(name)} starts one"
    return _switch(request, name, Versions.promoted, missing)


def roll_back(request: ProjectRequest, name: str) -> Switched:
    """Makes the previous version the current one again. See `promote`."""
    missing = f"`{name}` has no earlier version to go back to"
    return _switch(request, name, Versions.rolled_back, missing)


def _switch(
    request: ProjectRequest, name: str, change: Callable[[Versions], Versions | None], missing: str
) -> Switched:
    with open_query(load_for_reading(request), request, name) as query:
        if not query.state.version:
            raise UsageError(f"`{name}` has no checkpoint yet")
        with versions_lock(query.storage, query.root, name, query.model.file.location, Secrets(request.env)):
            parts = read_versions_file(query.storages.of, query.root)
            changed = change(parts)
            if changed is None:
                raise UsageError(missing)
            state = read_version(query.storages.of, query.root, changed.current)
            if not state.is_used and not (state.ledger is not None and state.ledger.identity.batch):
                raise FindingsError([_is_empty(query, changed.current)])
            write_versions(query.storage, query.root, changed)
            return _switched(query, state, parts.current)


def _switched(query: StoredQuery, state: CheckpointState, before: int) -> Switched:
    ledger = state.ledger
    places = () if ledger is None else (ledger.output, *ledger.also)
    return Switched(query.model.name, state.version, before, tuple(place for place in places if place is not None))


def _is_empty(query: StoredQuery, version: int) -> Finding:
    name = query.model.name
    return Finding(
        "version-empty",
        f"version {version} of `{name}` has committed no batch",
        "its readers would find nothing",
        f"run it with {parallel_command(name)} until it has read its sources",
        query.model.file.location,
    )
