"""`run --standby`: waits until no other run has one of the queries, then takes them over. Locks nothing until then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlstream.app.plan.ready import CheckContext, CheckedQuery, check_all, existing_version, lock_existing
from sqlstream.app.session.signals import StopSignals
from sqlstream.app.session.target_storage import storage_location
from sqlstream.app.state.repartition import check_migrations
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.gateway import is_jvm_gone
from sqlstream.spark.storage.query_locks import LEASE_PERIOD, NoLocks, query_in_use
from sqlstream.spark.storage.storage import storage_problems
from sqlstream.state.runs.events import Notice, RunEvent

LOOK_SECONDS = 1.0
"""How often a standby looks whether another run has one of the queries."""

ANOTHER_RUN = frozenset({"query-in-use", "query-lock-lost"})
"""The codes of findings that say that another run has a query."""


class Standby:
    """A run of `models` that waits for other runs. `notify` gets notices, each text once."""

    def __init__(
        self,
        checks: CheckContext,
        models: Sequence[CompiledModel],
        signals: StopSignals,
        notify: Callable[[RunEvent], None],
    ) -> None:
        self._checks, self._models, self._signals = checks, models, signals
        self._notify, self._notified = notify, set[str]()
        self._watched: dict[str, str] = {}
        checks.locks.check = signals.check

    def take_over(self) -> list[CheckedQuery]:
        """Waits until no other run has one of the queries, and returns them, checked and all locked. Of several that
        wait, one takes over, and the others wait again.

        Raises: FindingsError if the project cannot run, also before the wait; StopRequestedError.
        """
        self._refuse_now()
        has_waited, said = False, ""
        while True:
            while busy := self._busy():
                has_waited = True
                if said not in busy:  # that run has ended, so the next one is the reason
                    said = busy[0]
                    self._say(said)
                self._signals.sleep(LOOK_SECONDS)
            try:
                ready = self._lock_all()
            except FindingsError as error:
                self._checks.locks.release()
                if not _is_elsewhere(error) and not _is_away(error):
                    raise
                has_waited = True
                if _is_elsewhere(error):
                    self._say("standby: another run was faster, so this one waits again")
                self._signals.sleep(LOOK_SECONDS)
                continue
            if has_waited:
                self._say("standby: no other run has the queries any more, so this one takes over")
            return ready

    def _refuse_now(self) -> None:
        """Raises: FindingsError if the project cannot run, beside another run."""
        unlocked = replace(self._checks, locks=NoLocks(self._checks.secrets, lambda _: None), written={})
        try:
            for item in check_all(unlocked, self._models, self._signals):
                item.query.release()
        except FindingsError as error:
            if not _is_elsewhere(error):
                raise

    def _busy(self) -> list[str]:
        """Returns a sentence for each query that another run has.

        Raises: FindingsError if Spark has ended, or if a query may run on another server of Spark Connect.
        """
        # looks at all of them: only time shows whether a run with a lease is alive
        return [busy for model in self._models if (busy := self._busy_query(model)) is not None]

    def _busy_query(self, model: CompiledModel) -> str | None:
        self._signals.check()
        checks = self._checks
        try:
            with storage_problems(checks.wanted_root(model), storage_location(checks.loaded, model), checks.secrets):
                if checks.runtime.connect is None:
                    checks.runtime.session.conf.get(LEASE_PERIOD, None)  # an error if Spark has ended
                holder = self._holder(model)
        except FindingsError as error:
            if not _is_away(error):
                raise
            finding = error.findings[0]
            return f"standby: {finding.message} now, so it waits: {finding.why}"
        if holder is None:
            return None
        finding = query_in_use(model.name, holder, model.file.location)
        return f"standby: {finding.message}: {finding.why}"

    def _holder(self, model: CompiledModel) -> str | None:
        """Returns the run that has the version that `model` would use. Raises: OSError, Spark's errors."""
        checks, known = self._checks, self._watched.get(model.unique_id)
        found = None if known is None else self._holder_of(known, model)
        if found is not None:
            return found
        version = existing_version(checks, model)  # the other run may have created another one
        if version is None or version == known:
            return None
        self._watched[model.unique_id] = version
        return self._holder_of(version, model)

    def _holder_of(self, version: str, model: CompiledModel) -> str | None:
        storage, root = self._checks.storage_of(version)
        return self._checks.locks.holder(storage, root, model.name, model.file.location)

    def _lock_all(self) -> list[CheckedQuery]:
        """Returns the queries, checked and locked. All runs lock in the same order, and stop at the first query that
        another one has: of two runs of the same queries, one gets all. Raises: FindingsError.
        """
        checks = self._checks
        checks.written.clear()
        lock_existing(checks, sorted(self._models, key=lambda model: model.unique_id))
        ready = check_all(checks, self._models, self._signals)
        try:
            check_migrations(ready, checks)
            self._signals.check()
            for item in sorted(ready, key=lambda item: item.query.model.unique_id):
                with storage_problems(item.root, storage_location(checks.loaded, item.query.model), checks.secrets):
                    item.lock(checks)
        except BaseException:  # also a request to stop
            for item in ready:
                item.query.release()
            raise
        return [replace(item, locked=item.plan.version) for item in ready]

    def _say(self, text: str) -> None:
        if text not in self._notified:
            self._notified.add(text)
            self._notify(Notice(text))


def _is_away(error: FindingsError) -> bool:
    """Returns whether the storage does not respond now, although Spark runs."""
    cause = error.__cause__
    return error.findings[0].code == "storage-unusable" and cause is not None and not is_jvm_gone(cause)


def _is_elsewhere(error: FindingsError) -> bool:
    """Returns whether another run has queries, and nothing else is wrong."""
    return all(finding.code in ANOTHER_RUN for finding in error.findings)
