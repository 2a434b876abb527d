"""The ledgers of a run, written before a query starts, and after a changed query has committed its first batch; and the
marks of complete outputs of batch models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

from sqlstream.app.plan.read_so_far import static_files
from sqlstream.app.plan.ready import CheckContext, CheckedQuery
from sqlstream.app.request import CAUGHT_UP
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.storage.checkpoints import archive_start, remove_finished, write_ledger
from sqlstream.spark.storage.locks import LockLostError
from sqlstream.spark.storage.query_locks import versions_lock
from sqlstream.state.checkpoints import last_commit, read_versions_file
from sqlstream.state.layout import completion_path, ledger_path, versions_path
from sqlstream.state.ledger import FileSummary, HistoryEntry, InputIds, Ledger, PendingLedger, SourceUse
from sqlstream.state.plan import Action
from sqlstream.state.query_versions import Versions, completion_text
from sqlstream.state.readers import path_of, topics_of
from sqlstream.state.runs.events import Notice, QueryResult, RunEvent
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.version import __version__


def write_before_start(ready: CheckedQuery, checks: CheckContext) -> None:
    """Writes the ledger of a query that is about to start, and archives the files of a failed first run.

    If the checkpoint has batches of an earlier query, its ledger stays in effect until the new query has committed a
    batch. Files of earlier runs into a memory sink are removed. Raises: FindingsError, OSError, Spark's errors.
    """
    model = ready.query.model
    checks.locks.confirm(ready.lock_root, model.name, model.file.location)  # a repartition may have taken minutes
    record_version(ready, checks)
    if ready.plan.action is Action.RESET:
        archive_start(checks.storage_of, ready.root, ready.state)
    if ready.plan.writes_ledger:
        _write(ready, checks)


def _write(ready: CheckedQuery, checks: CheckContext) -> None:
    new, old = _ledger(ready, checks), ready.state.ledger
    if ready.plan.action is not Action.RESUME:
        write_ledger(ready.storage, ready.root, new)
        if ready.plan.action is Action.FRESH_EACH_RUN:
            remove_finished(ready.storage, ready.root, ready.plan.version)
    elif old is not None:
        changed = old.identity != ready.query.identity
        pending = PendingLedger(ready.state.last_commit, new) if changed else None
        names = ("signature", "spark_version", "written", "history", "input_ids")
        renewed = {name: getattr(new, name) for name in names}
        # an unchanged query keeps its ledger, in the form of this sqlstream and this Spark
        current = old if changed else replace(old, **renewed)
        write_ledger(ready.storage, ready.root, replace(current, retired=new.retired, pending=pending))


class LedgerUpdater:
    """Passes the events of a run to `notify`, writes the ledger of a changed query after it has committed a batch, and
    marks the complete output of a batch model.

    If the run is killed before that, the next one sees the commit and writes the ledger.
    """

    def __init__(self, ready: Sequence[CheckedQuery], checks: CheckContext, notify: Callable[[RunEvent], None]) -> None:
        self._notify, self._locks = notify, checks.locks
        self._waiting = {
            item.query.model.name: (item, _ledger(item, checks))
            for item in ready
            if item.plan.action is Action.RESUME and item.plan.writes_ledger
        }
        self._batches = {item.query.model.name: item for item in ready if item.query.identity.batch}

    def __call__(self, event: RunEvent) -> None:
        """Handles one event."""
        if isinstance(event, BatchProgress) and event.model in self._waiting:
            self._write_if_committed(event.model)
        if isinstance(event, BatchProgress) and event.model in self._batches:
            self._mark_complete(self._batches[event.model])
        self._notify(event)

    def finish(self, results: Sequence[QueryResult]) -> None:
        """Checks every changed query again, after the run. Reports accepted changes that are not in effect because
        their queries read no data.
        """
        for model in tuple(self._waiting):
            self._write_if_committed(model)
        for result in results:
            waiting = self._waiting.get(result.model)
            if waiting is None or not waiting[0].plan.accepted or result.batches or result.finding:
                continue
            self._notify(
                Notice(
                    f"{result.model}: the accepted change is not in effect yet, because there was no data to "
                    f"read; the next run needs `--accept-state-change {result.model}` again"
                )
            )

    def _mark_complete(self, ready: CheckedQuery) -> None:
        """Records that a batch model has written its whole output. Without the mark, `promote` refuses the version."""
        storage, root, version = ready.storage, ready.root, ready.plan.version
        with suppress(OSError, LockLostError, *SPARK_ERRORS):  # the next run writes the output again
            self._locks.of(ready.lock_root).confirm()
            ledger = storage.read_text(ledger_path(root, version))
            if ledger is not None:
                storage.write_text(completion_path(root, version), completion_text(ledger))

    def _write_if_committed(self, model: str) -> None:
        ready, ledger = self._waiting[model]
        with suppress(OSError, LockLostError, *SPARK_ERRORS):  # the next run checks again
            self._locks.of(ready.lock_root).confirm()
            if last_commit(ready.storage, ready.root, ready.plan.version) > ready.state.last_commit:
                write_ledger(ready.storage, ready.root, ledger)
                del self._waiting[model]


def _ledger(ready: CheckedQuery, checks: CheckContext) -> Ledger:
    """Returns the ledger of the query in its present form."""
    now = datetime.now(UTC).isoformat(timespec="seconds")
    accepted = ready.state.ledger.accepted if ready.state.ledger and ready.plan.action is Action.RESUME else ()
    models = {model.name: model for model in ready.query.compiled.models.values()}
    if ready.plan.accepted:
        accepted = (*accepted, {"at": now, "changes": list(ready.plan.changes)})
    return Ledger(
        identity=ready.query.identity,
        version=ready.plan.version,
        written_at=now,
        sqlstream_version=__version__,
        spark_version=checks.runtime.version,
        reason=str(ready.plan.action),
        output=ready.output(checks),
        accepted=accepted,
        retired=_retired(ready),
        also=ready.outputs(checks)[1:],
        signature=ready.query.signature,
        written={name: models[name].file.text for name in ready.query.identity.models},
        history=_history(ready, checks, now),
        input_ids=known_ids(ready),
        former=_former(ready),
        static_files=_static_files(ready),
    )


def known_ids(ready: CheckedQuery) -> InputIds:
    """Returns the ids of what the query reads: those found at the check, and those that the ledger knew before."""
    found, old = ready.query.input_ids, ready.state.ledger
    before = old.input_ids if old is not None and ready.plan.action is Action.RESUME else {}
    return {table: {**before.get(table, {}), **found.get(table, {})} for table in (*before, *found)}


def _static_files(ready: CheckedQuery) -> Mapping[str, FileSummary]:
    """Returns the files of the static tables of a query with state, of each when the query first read it."""
    query, old = ready.query, ready.state.ledger
    found = static_files(query.compiled, query.model) if query.identity.stateful else {}
    return found | dict(old.static_files) if old is not None and ready.plan.action is Action.RESUME else found


def _former(ready: CheckedQuery) -> tuple[SourceUse, ...]:
    """Returns the readers that the query had before, those that now read another path included."""
    old = ready.state.ledger
    if old is None or ready.plan.action is not Action.RESUME:
        return ()
    now = {(use.name, path_of(use), *topics_of(use)) for use in ready.query.identity.sources}
    left = (use for use in old.identity.sources if (use.name, path_of(use), *topics_of(use)) not in now)
    return (*old.former, *(use for use in left if use not in old.former))


def _history(ready: CheckedQuery, checks: CheckContext, now: str) -> tuple[HistoryEntry, ...]:
    """Returns the history of the version with the change that begins now."""
    plan, old = ready.plan, ready.state.ledger
    entry = HistoryEntry(now, str(plan.action), plan.changes, plan.accepted, __version__, checks.runtime.version)
    if plan.action is not Action.RESUME or old is None:
        return (entry,)
    is_renewed = not (plan.changes or plan.new_columns or plan.accepted)  # in the form of this sqlstream
    return old.history if is_renewed else (*old.history, entry)


def _retired(ready: CheckedQuery) -> tuple[str, ...]:
    """Returns the names of readers that are in the checkpoint and no longer in the query."""
    old = ready.state.ledger
    if old is None or ready.plan.action is not Action.RESUME:
        return ()
    abandoned = ready.state.abandoned.identity.sources if ready.state.abandoned else ()
    names = {*old.retired, *(use.name for use in (*old.identity.sources, *abandoned))}
    return tuple(sorted(names - {use.name for use in ready.query.identity.sources}))


def record_version(ready: CheckedQuery, checks: CheckContext) -> None:
    """Records that the version that is about to start is the current one, or runs in parallel with it.

    Raises: FindingsError if another command is changing this; OSError, Spark's errors.
    """
    version, model = ready.plan.version, ready.query.model
    if version == ready.state.version:
        return
    if not _needs_file(ready, read_versions_file(checks.storage_of, ready.root)):
        return
    with versions_lock(ready.storage, ready.root, model.name, model.file.location, checks.secrets):
        # read again, now that no other command can change it
        parts = read_versions_file(checks.storage_of, ready.root)
        changed = (
            parts.with_parallel(version)
            if ready.is_parallel
            else parts.refreshed(version, is_waiting=checks.request.switch_when == CAUGHT_UP)
        )
        if ready.plan.action is Action.REFRESH and changed.current != parts.current:
            at = datetime.now(UTC).isoformat(timespec="seconds")
            changed = changed.recorded("refresh", parts, at)
        ready.storage.write_text(versions_path(ready.root), changed.to_json())


def _needs_file(ready: CheckedQuery, parts: Versions) -> bool:
    """Returns whether the next run could not tell the parts from the numbers of the versions."""
    is_default = parts.parallel is None and parts.previous is None
    starts_alone = ready.plan.action is not Action.REFRESH and not ready.is_parallel
    return not (is_default and starts_alone)
