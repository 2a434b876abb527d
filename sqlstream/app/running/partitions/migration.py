"""`run --migrate`: moves the state of queries to the target's number of partitions before they resume."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlstream.app.running.partitions.repartition import StoredState
from sqlstream.app.running.ready import CheckContext, CheckedQuery, storage_location
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.spark.storage.storages import SessionStorages
from sqlstream.state.checkpoints import read_version
from sqlstream.state.plan import Action
from sqlstream.state.repartition.batches import target_partitions
from sqlstream.state.runs.events import Notice, RunEvent


def check_migrations(ready: Sequence[CheckedQuery], checks: CheckContext) -> None:
    """Checks that Spark can repartition the state of each query that `--migrate` moves. Writes nothing.

    Raises: FindingsError.
    """
    for item in ready:
        if _wanted(item, checks) is not None:
            with storage_problems(item.root, storage_location(checks.loaded, item.query.model), checks.secrets):
                _stored_state(item, checks).check()


def migrate(
    ready: Sequence[CheckedQuery], checks: CheckContext, notify: Callable[[RunEvent], None]
) -> list[CheckedQuery]:
    """Returns the queries after the repartition of those that `--migrate` selects. Raises: FindingsError, with the
    query as it was before.
    """
    return [_migrated(item, checks, notify) for item in ready]


def _migrated(item: CheckedQuery, checks: CheckContext, notify: Callable[[RunEvent], None]) -> CheckedQuery:
    name = item.query.model.name
    if name not in checks.request.migrate:
        return item
    wanted = _wanted(item, checks)
    if wanted is None:
        notify(Notice(f"{name}: nothing to migrate; the target does not change the number of partitions of its state"))
        return item
    with storage_problems(item.root, storage_location(checks.loaded, item.query.model), checks.secrets):
        done = _stored_state(item, checks).repartition(wanted)
        state = read_version(checks.storage_of, item.root, item.state.version)
    notify(Notice(f"{name}: its state has moved from {done.before} to {done.after} partitions"))
    return replace(item, state=state)


def _wanted(item: CheckedQuery, checks: CheckContext) -> int | None:
    """Returns the number of partitions to which the state of a query moves, None if it stays as it is."""
    ledger = item.state.ledger
    if item.query.model.name not in checks.request.migrate or item.plan.action is not Action.RESUME or ledger is None:
        return None
    return target_partitions(checks.loaded.compiled.project.target.spark, ledger.identity)


def _stored_state(item: CheckedQuery, checks: CheckContext) -> StoredState:
    model, session = item.query.model, checks.runtime.session
    return StoredState(
        model.name,
        model.file.location,
        SessionStorages(session),
        session,
        checks.secrets,
        item.root,
        item.state,
        item.logged_outputs(checks),
        partial(checks.locks.confirm, item.lock_root, model.name, model.file.location),
    )
