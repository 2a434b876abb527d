"""`sqlstream state repartition` and `run --migrate`: changes the number of partitions of a query's state, so
that an interruption at any moment loses nothing. The query does not run.

The steps: the new ledger is written as pending; Spark writes the state as a new batch and commits it; the logs of file
sinks get the batch; the new ledger replaces the old one. Before the commit the query still belongs to the old ledger,
and the begun batch can be archived. After it only the last two steps remain, which a repetition completes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import load
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import storage_location
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Location, Place
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import SETTING
from sqlstream.spark.reading.state_rows import stores_of
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import (
    archive_entry,
    can_log_batches,
    log_empty_batch,
    read_offsets,
    repartition_state,
    stored_damage,
    write_ledger,
)
from sqlstream.spark.storage.locks import HeldLock
from sqlstream.spark.storage.query_locks import query_lock
from sqlstream.spark.storage.storage import SessionStorages, Storages, storage_problems
from sqlstream.state import repartitions as refusals
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.checkpoints import CheckpointState, read_version
from sqlstream.state.damage import Damage, damage_finding
from sqlstream.state.layout import archive_moment, archive_path, checkpoint_path
from sqlstream.state.ledger import Ledger
from sqlstream.state.plan import Action
from sqlstream.state.repartitions import (
    batch_partitions,
    batch_settings,
    older_spark,
    repartitioned,
    repartitioning,
    target_partitions,
    with_partitions,
)
from sqlstream.state.runs.events import Notice, RunEvent
from sqlstream.state.stored_state import Repartitioned
from sqlstream.version import __version__


@dataclass(frozen=True)
class StoredState:
    """The state of one version of a query that is locked and has committed a batch. `outputs` are the folders of its
    file sinks that have a log. `confirm` checks that the version is still locked.
    """

    model: str
    location: Location
    storages: Storages
    session: SparkSession
    secrets: Secrets
    root: str
    state: CheckpointState
    outputs: tuple[str, ...]
    confirm: Callable[[], None]

    @property
    def checkpoint(self) -> str:
        """The path of the checkpoint."""
        return checkpoint_path(self.root, self.state.version)

    def check(self) -> None:
        """Checks that Spark can repartition the state. Writes nothing. Raises: FindingsError, Spark's errors."""
        found = next(self._refusals(), None)
        if found is not None:
            raise FindingsError([found])

    def _refusals(self) -> Iterator[Finding]:
        """Yields the reasons against a repartition. A later one is right only without the earlier ones."""
        name, place, state = self.model, self.location, self.state
        yield from _found(refusals.older_spark(name, self.session.version, place))
        yield from (damage_finding(name, damage, place) for damage in self._damage() if damage.repartition is None)
        if state.ledger is None:
            problem = f"cannot be read: {state.unreadable}" if state.unreadable else "is missing"
            yield refusals.no_ledger(name, state.ledger_path, problem, place)
        offsets = self._offsets()
        if offsets.last > state.last_commit and not self._interrupted():
            yield refusals.open_batch(name, offsets.last, place)
        yield from _found(refusals.unsupported_store(name, batch_settings(offsets.texts[state.last_commit]), place))
        yield from _found(refusals.unsupported_operators(name, stores_of(self.session, self.checkpoint), place))
        if not can_log_batches(self.session, self.outputs):
            yield refusals.no_internals(name, SETTING, place)

    def repartition(self, partitions: int) -> Repartitioned:
        """Has Spark repartition the state, or completes a repartition that was interrupted. If an earlier one was
        interrupted before its commit, first archives what it left.

        Raises: FindingsError. The query then has its old number of partitions.
        """
        self.check()
        ledger = self.state.ledger
        before = batch_partitions(self._offsets(), self.state.last_commit)
        if ledger is None or before is None:
            raise ValueError(f"{self.checkpoint} has no known number of partitions")
        self.confirm()
        archived = self._archive_interrupted()
        if any(damage.repartition for damage in self._damage()):  # committed, and missing in the log of an output
            log_empty_batch(self.session, self.outputs, self.state.last_commit)
        batch = self.state.last_commit + (before != partitions)
        done = Repartitioned(self.model, self.state.version, before, partitions, batch, archived)
        if before != partitions:
            self._write(ledger, done)
        else:
            self._write_ledger(with_partitions(ledger, partitions))  # without what is pending since an interruption
        return done

    def _write(self, ledger: Ledger, done: Repartitioned) -> None:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        new = repartitioned(ledger, done.before, done.after, now=now, versions=(__version__, self.session.version))
        # pending: the new number holds only when Spark has committed the batch
        self._write_ledger(repartitioning(ledger, new, self.state.last_commit))
        try:
            repartition_state(self.session, self.checkpoint, done.after)
        except SPARK_ERRORS as error:
            self._archive_interrupted()
            self._write_ledger(ledger)
            raise FindingsError([self._failed(error)]) from error
        self.confirm()
        log_empty_batch(self.session, self.outputs, done.batch)
        self._write_ledger(new)

    def _write_ledger(self, ledger: Ledger) -> None:
        self.confirm()
        storage, root = self.storages.of(self.root)
        write_ledger(storage, root, ledger)

    def _failed(self, error: BaseException) -> Finding:
        return error_finding(
            error,
            code=refusals.CODE,
            what=refusals.failed_text(self.model, self.state.version),
            place=Place(self.location),
            secrets=self.secrets,
        )

    def _archive_interrupted(self) -> str | None:
        """Archives an uncommitted repartition, and returns the folder of the archive; None without one."""
        paths = [path for damage in self._interrupted() for path in damage.archive]
        if not paths:
            return None
        archive = archive_path(self.root, self.state.version, archive_moment())
        for path in dict.fromkeys(paths):
            archive_entry(self.storages, path, self.checkpoint, archive)
        return archive

    def _interrupted(self) -> list[Damage]:
        return [damage for damage in self._damage() if damage.repartition is not None and damage.archive]

    def _damage(self) -> list[Damage]:
        outputs: list[str | None] = [*(self.outputs or [None])]
        return [damage for output in outputs for damage in stored_damage(self.storages, self.checkpoint, output)]

    def _offsets(self) -> BatchLog:
        return read_offsets(*self.storages.of(self.checkpoint))


def _found(finding: Finding | None) -> Iterator[Finding]:
    if finding is not None:
        yield finding


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


def repartition_query(
    request: ProjectRequest, name: str, partitions: int, *, version: int | None = None
) -> Repartitioned:
    """Changes the state of the query of `name` to `partitions` partitions, by default in the current version.

    Raises: FindingsError, also if the query runs or Spark cannot repartition it, without any change; UsageError if
    `name` is not a terminal model, or the query has no state.
    """
    with open_query(load(request), request, name, version) as query:
        place = query.model.file.location
        if query.state.last_commit < 0:
            raise UsageError(f"`{name}` has no state yet: no batch is committed")
        if not query.storages.of(query.checkpoint)[0].names(f"{query.checkpoint}/state"):
            raise UsageError(f"`{name}` keeps no state")
        older = older_spark(name, request.spark_version(), place)
        if older is not None:
            raise FindingsError([older])
        secrets = Secrets(request.env)
        with query_lock(query.storage, query.lock_root, name, place, secrets) as lock:
            locked = replace(query, state=read_version(query.storages.of, query.root, query.state.version))
            request.notify("Starting Spark to repartition the state")
            return _repartition_stored_state(locked, request, lock).repartition(partitions)


def _repartition_stored_state(query: StoredQuery, request: ProjectRequest, lock: HeldLock) -> StoredState:
    return StoredState(
        query.model.name,
        query.model.file.location,
        query.storages,
        query.storages.session,
        Secrets(request.env),
        query.root,
        query.state,
        tuple(output.path for output in query.outputs if not output.is_replaced),
        lock.confirm,
    )
