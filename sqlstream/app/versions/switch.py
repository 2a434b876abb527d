"""`sqlstream promote` and `sqlstream rollback`: make another version of a query the current one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import storage_base
from sqlstream.app.status.lags import ProgressReader
from sqlstream.app.status.lags_text import lag_text
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.app.versions.publications import QueryNames, names_of
from sqlstream.app.versions.stored_versions import Switched
from sqlstream.app.versions.versions_text import no_promotion_text, no_rollback_text
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.numbers import long_seconds_text
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.query_locks import versions_lock
from sqlstream.state.checkpoints import CheckpointState, read_version, read_versions_file
from sqlstream.state.layout import completion_path, ledger_path
from sqlstream.state.query_versions import Versions, is_complete
from sqlstream.state.refusals import parallel_command
from sqlstream.state.sources.lag import VersionProgress, amount_of


def promote(request: ProjectRequest, name: str) -> Switched:
    """Makes the version that runs in parallel with the current one the current version of the terminal model `name`.

    Running queries continue. Raises: FindingsError if that version has committed no batch, or has not written its whole
    output, or for errors of the storage; UsageError if there is none, or `name` is not a terminal model.
    """
    return _switch(request, name, Versions.promoted, no_promotion_text, is_promotion=True)


def roll_back(request: ProjectRequest, name: str) -> Switched:
    """Makes the previous version the current one again. See `promote`."""
    return _switch(request, name, Versions.rolled_back, no_rollback_text, is_promotion=False)


def _switch(
    request: ProjectRequest,
    name: str,
    change: Callable[[Versions], Versions | None],
    missing: Callable[[str, Versions], str],
    *,
    is_promotion: bool,
) -> Switched:
    with open_query(load_for_reading(request), request, name) as query:
        if not query.state.version:
            raise UsageError(f"`{name}` has no checkpoint yet")
        with versions_lock(query.storage, query.root, name, query.model.file.location, Secrets(request.env)):
            names, parts = names_of(query, request), read_versions_file(query.storages.of, query.root)
            finished = _finish(names, parts, is_promotion=is_promotion)
            changed = change(finished or parts)
            if changed is None and finished is None:
                raise UsageError(missing(name, parts))
            if changed is None:
                # the command has only completed an earlier one
                return _switched(query, names, parts, parts.previous or parts.parallel or parts.current)
            state = read_version(query.storages.of, query.root, changed.current)
            _check(query, state, is_promotion=is_promotion)
            at = datetime.now(UTC).isoformat(timespec="seconds")
            changed, problems = names.switch(changed.recorded("promote" if is_promotion else "rollback", parts, at))
            done = replace(_switched(query, names, changed, parts.current), problems=problems)
        return with_progress(done, query)


def _finish(names: QueryNames, parts: Versions, *, is_promotion: bool) -> Versions | None:
    """Completes a switch that a killed command has begun, and for a promotion also that to a version which catches up
    after a full refresh. Returns the parts, None if there was none to complete.
    """
    if parts.is_waiting:
        return names.switch(replace(parts, is_waiting=False))[0] if is_promotion and names.has_rows(parts) else None
    if not any(each.name in (parts.published or ()) for each in names.behind(parts)):
        return None
    with suppress(FindingsError):  # such as for a version whose table is gone: the command may switch to another one
        return names.switch(parts)[0]
    return None


def _switched(query: StoredQuery, names: QueryNames, parts: Versions, before: int) -> Switched:
    state = read_version(query.storages.of, query.root, parts.current)
    return Switched(query.model.name, parts.current, before, tuple(path for _, path in names.outputs(parts, state)))


def _check(query: StoredQuery, state: CheckpointState, *, is_promotion: bool) -> None:
    """Checks that a version has rows for its readers. Raises: FindingsError."""
    if state.ledger is None or not state.ledger.identity.batch:
        if not state.is_used:
            raise FindingsError([_is_empty(query, state.version, "has committed no batch")])
    elif is_promotion:
        paths = (path(query.root, state.version) for path in (completion_path, ledger_path))
        if not is_complete(*map(query.storage.read_text, paths)):
            raise FindingsError([_is_empty(query, state.version, "has not written its whole output")])


def _is_empty(query: StoredQuery, version: int, problem: str) -> Finding:
    name = query.model.name
    return Finding(
        "version-empty",
        f"version {version} of `{name}` {problem}",
        "its readers would find nothing, or only a part of its rows",
        f"run it with {parallel_command(name)} until it has read its sources",
        query.model.file.location,
    )


def with_progress(done: Switched, query: StoredQuery) -> Switched:
    """Returns `done` with the process that still runs the version before, and how far the current one is behind, both
    as `sqlstream status` knows them; without what cannot be read.
    """
    reader = ProgressReader(query.loaded, storage_base(query.loaded), query.storages.of)
    with suppress(OSError, *SPARK_ERRORS):  # the switch itself has succeeded
        current, before = (reader.version(query.model, version) for version in (done.version, done.before))
        return replace(done, holder=before.holder, behind=tuple(_behind(current, before)))
    return done


def _behind(current: VersionProgress, before: VersionProgress) -> Iterator[str]:
    name = f"version {current.position.version}"
    for source in current.sources:
        if source.lag is not None and amount_of(source.lag):
            yield f"{name} has not read {lag_text(source.lag)} of {source.name} yet"
    own, other = current.position.watermark_ms, before.position.watermark_ms
    if own is not None and other is not None and own < other:
        behind = long_seconds_text((other - own) / 1000)
        yield f"the watermark of {name} is {behind} behind that of version {before.position.version}"
