"""Locks the queries of a run, so that no other run uses their checkpoints."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType

from pyspark.sql import SparkSession

from sqlstream.errors import Finding, FindingsError, Severity
from sqlstream.location import Location
from sqlstream.spark.jvm.connect import ConnectSessions, session_id_of
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.hadoop import HadoopStorage, creates_once
from sqlstream.spark.storage.lease import HadoopLeaseFiles, LeaseFiles, LeaseWatch, LocalLeaseFiles, lease, this_holder
from sqlstream.spark.storage.locks import (
    HeldLock,
    KeptLock,
    LockedError,
    LockLostError,
    NoFileLocksError,
    file_lock,
    file_lock_holder,
)
from sqlstream.spark.storage.storage import Storage, storage_for
from sqlstream.state.layout import CHECKPOINT, lease_path, lock_path, remote_query_path, versions_root
from sqlstream.state.runs.lease_rules import PERIOD_SECONDS, Availability

LEASE_PERIOD = "spark.sqlstream.lease.period"
"""A setting for tests: the seconds between two heartbeats of a lease."""


class QueryLocks:
    """The locks of a run by the folders of versions of queries, until the body of a `with` ends. Any thread can use it.

    `waiting` gets a message before a lock has to wait for another run. `connect` are the sessions of a run over
    Spark Connect; it ends the queries that a killed run has left on the same server. `check` is called during waits,
    and can raise to end them.
    """

    def __init__(self, secrets: Secrets, waiting: Callable[[str], None]) -> None:
        self._secrets, self._waiting = secrets, waiting
        self.connect: ConnectSessions | None = None
        self.check: Callable[[], None] = lambda: None
        self._reported: set[str] = set()
        self._mutex = threading.Lock()
        self._stack = ExitStack()
        self._locks: dict[str, HeldLock] = {}
        self._watches: dict[str, LeaseWatch] = {}
        self._has_ended = False

    def __enter__(self) -> QueryLocks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with self._mutex:
            self._has_ended = True
            self._stack.close()

    def add(self, storage: Storage, root: str, model: str, location: Location) -> None:
        """Locks the version of a query in the folder `root`. Raises: FindingsError if another process has locked it."""
        with ExitStack() as new:
            watch = self._watches.get(root)
            held = query_lock(
                storage, root, model, location, self._secrets, self._report, self.check, self.connect, watch
            )
            lock = new.enter_context(held)
            self._watches.pop(root, None)
            with self._mutex:
                if not self._has_ended:  # otherwise a check that nobody waits for has just ended
                    self._locks[root] = lock
                    self._stack.push(new.pop_all())

    def holder(self, storage: Storage, root: str, model: str, location: Location) -> str | None:
        """Returns the run that has locked the version in `root`, None if this run can lock it. Locks nothing.

        A run with a lease counts as alive until it has given no sign of life for long enough, so call it again and
        again. Raises: FindingsError if the query may run on another server of Spark Connect; OSError, Spark's errors.
        """
        if isinstance(storage, HadoopStorage):
            found = self._lease_holder(root, HadoopLeaseFiles(storage.session, lease_path(root)))
        else:
            try:
                found = file_lock_holder(Path(lock_path(root)))
            except NoFileLocksError:
                found = self._lease_holder(root, LocalLeaseFiles(lease_path(root)))
        if found is None:
            _check_remote_query(storage, root, model, location, self.connect)
        return found

    def _lease_holder(self, root: str, files: LeaseFiles) -> str | None:
        watch = self._watches.setdefault(root, LeaseWatch())
        look = watch.look(files)
        if look.availability is Availability.HELD:
            watch.start_again()
        return None if look.availability is Availability.FREE else look.name

    def release(self) -> None:
        """Gives all locks back."""
        with self._mutex:
            self._stack.close()
            self._locks.clear()

    def of(self, root: str) -> HeldLock:
        """Returns the lock of the version in `root`. Raises: KeyError if it is not locked."""
        return self._locks[root]

    def holds(self, root: str) -> bool:
        """Returns whether this run has locked the version in `root`."""
        return root in self._locks

    def confirm(self, root: str, model: str, location: Location) -> None:
        """Checks that the version in `root` is still locked. Raises: FindingsError."""
        with _lost_locks(model, location, self._secrets):
            self.of(root).confirm()

    def _report(self, text: str) -> None:
        with self._mutex:
            if text not in self._reported:  # a standby can try several times
                self._waiting(text)
            self._reported.add(text)


class NoLocks(QueryLocks):
    """Locks nothing, for a command that only reads and may run beside a run."""

    def add(self, storage: Storage, root: str, model: str, location: Location) -> None:
        """Does nothing."""

    def of(self, root: str) -> HeldLock:  # noqa: ARG002 - as in QueryLocks
        """Returns a lock that holds nothing, for a query that writes nothing."""
        return KeptLock()

    def confirm(self, root: str, model: str, location: Location) -> None:
        """Does nothing."""


class RemoteQueryError(LockedError):
    """A killed run over Spark Connect has left a query, which may still run on `server`. `path` is the record of it."""

    def __init__(self, server: str, path: str) -> None:
        self.server, self.path = server, path
        super().__init__(f"a run over Spark Connect that was killed, on the server {server},")


@contextmanager
def folder_lock(
    storage: Storage,
    root: str,
    waiting: Callable[[str], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    connect: ConnectSessions | None = None,
    watch: LeaseWatch | None = None,
) -> Iterator[HeldLock]:
    """Locks the folder `root` of a query while the body runs, and creates it if needed: with a lock file, or with a
    lease where the file system has no locks. Ends the query that a killed run has left on the server of `connect`.
    `watch` has watched the lease so far.

    Passes a message to `waiting` before it waits for another process, and calls `check` during that. Raises:
    LockedError, RemoteQueryError, what `check` raises.
    """
    with ExitStack() as stack:
        held: HeldLock = KeptLock()
        if isinstance(storage, HadoopStorage):
            period = float(storage.session.conf.get(LEASE_PERIOD, None) or PERIOD_SECONDS)
            files = HadoopLeaseFiles(storage.session, lease_path(root))
            held = stack.enter_context(lease(files, this_holder(period), waiting, check, watch))
        else:
            try:
                stack.enter_context(file_lock(Path(lock_path(root))))
            except NoFileLocksError:
                local = LocalLeaseFiles(lease_path(root))
                held = stack.enter_context(lease(local, this_holder(PERIOD_SECONDS), waiting, check, watch))
        left = _remote_query(storage, root)
        if left is not None:
            if connect is None or connect.server != left["server"]:
                raise RemoteQueryError(left["server"], remote_query_path(root))
            if connect.end_queries_of(left["session"]):
                waiting(f"ended the query that a killed run had left on {connect.server}")
        try:
            yield held
        finally:
            if connect is not None:
                _forget_remote_query(storage, root, connect)


@contextmanager
def query_lock(
    storage: Storage,
    root: str,
    model: str,
    location: Location,
    secrets: Secrets,
    waiting: Callable[[str], None] = lambda _: None,
    check: Callable[[], None] = lambda: None,
    connect: ConnectSessions | None = None,
    watch: LeaseWatch | None = None,
) -> Iterator[HeldLock]:
    """Locks the version of a query in the folder `root` while the body runs, as `folder_lock` does.

    Raises: FindingsError if another process has locked it, if it may run on another server of Spark Connect, or if the
    body finds that the lock is lost.
    """
    with ExitStack() as stack:
        try:
            held = folder_lock(storage, root, lambda text: waiting(f"{model}: {text}"), check, connect, watch)
            lock = stack.enter_context(held)
        except RemoteQueryError as error:
            raise FindingsError([_runs_elsewhere(model, error, location)]) from error
        except LockedError as error:
            raise FindingsError([query_in_use(model, str(error), location)]) from error
        stack.enter_context(_lost_locks(model, location, secrets))
        yield lock


def note_remote_query(checkpoint: str, server: str, session: SparkSession) -> None:
    """Records that the query with this checkpoint is about to start in a session on a Spark Connect server. A server
    keeps the queries of a client that was killed for an hour.
    """
    storage, path = storage_for(checkpoint, session)
    record = {"server": server, "session": session_id_of(session)}
    storage.write_text(remote_query_path(path.removesuffix(CHECKPOINT)), f"{json.dumps(record)}\n")


def _check_remote_query(
    storage: Storage, root: str, model: str, location: Location, connect: ConnectSessions | None
) -> None:
    """Raises: FindingsError if a killed run has left the query on another server than that of `connect`."""
    left = _remote_query(storage, root)
    if left is not None and (connect is None or connect.server != left["server"]):
        error = RemoteQueryError(left["server"], remote_query_path(root))
        raise FindingsError([_runs_elsewhere(model, error, location)]) from error


def _forget_remote_query(storage: Storage, root: str, connect: ConnectSessions) -> None:
    """Removes the record of a query whose session has ended: sessions end before locks are released."""
    left = _remote_query(storage, root)
    # after a lost lock, the record can be that of another run
    if left is not None and connect.released and left["session"] in connect.session_ids:
        storage.write_text(remote_query_path(root), "{}\n")


def _remote_query(storage: Storage, root: str) -> Mapping[str, str] | None:
    """Returns the `server` and `session` of a query that has not been ended, None without one."""
    text = storage.read_text(remote_query_path(root))
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return {"server": "an unknown server", "session": ""}
    return found if isinstance(found, dict) and {"server", "session"} <= found.keys() else None


def _runs_elsewhere(model: str, left: RemoteQueryError, location: Location) -> Finding:
    return Finding(
        "query-in-use",
        f"the query of `{model}` may still run on the Spark Connect server {left.server}",
        "a run over Spark Connect ended without stopping it, and the server keeps it for an hour",
        f"run it on a target with this server as `remote`, which ends it; if the server has ended, remove {left.path}",
        location,
    )


@contextmanager
def _lost_locks(model: str, location: Location, secrets: Secrets) -> Iterator[None]:
    """Converts LockLostError to a finding. Raises: FindingsError."""
    try:
        yield
    except LockLostError as error:
        raise FindingsError([query_lock_lost(model, str(error), location, secrets)]) from error


@contextmanager
def versions_lock(storage: Storage, root: str, model: str, location: Location, secrets: Secrets) -> Iterator[None]:
    """Keeps other commands from changing which version of the query under `root` is current, while the body runs.

    Raises: FindingsError if another process is doing that.
    """
    with ExitStack() as stack:
        try:
            lock = stack.enter_context(folder_lock(storage, versions_root(root)))
        except LockedError as error:
            raise FindingsError([_versions_in_use(model, str(error), location)]) from error
        stack.enter_context(_lost_locks(model, location, secrets))
        lock.confirm()
        yield


def _versions_in_use(model: str, holder: str, location: Location) -> Finding:
    return Finding(
        "query-in-use",
        f"another command is changing which version of `{model}` is current",
        f"{holder} started a version, or promotes or rolls back one",
        "repeat the command in a moment",
        location,
    )


def query_in_use(model: str, holder: str, location: Location) -> Finding:
    """Returns the finding that `holder` runs the query."""
    return Finding(
        "query-in-use",
        f"the query of `{model}` is already running",
        f"{holder} uses its checkpoint, and two runs would write the same batches",
        "stop that run first, or exclude the query with --exclude",
        location,
    )


def weak_lock(storage: Storage, root: str, target: str, location: Location) -> Finding | None:
    """Returns a warning if two runs can lock `root` at the same time. Raises: Spark's errors."""
    if not isinstance(storage, HadoopStorage) or creates_once(storage.session, root):
        return None
    return Finding(
        "weak-lock",
        f"the storage of target `{target}` cannot reliably prevent a second run of a query",
        "it does not refuse to create a file that another process has just created (on S3: no conditional writes), so "
        "two runs that start at the same moment can both start the query",
        "start one run at a time, for example with flock, or use a store that has conditional writes",
        location,
        severity=Severity.WARNING,
    )


def query_lock_lost(model: str, why: str, location: Location, secrets: Secrets) -> Finding:
    """Returns the finding that this run has stopped the query, because it no longer has its lock."""
    return Finding(
        "query-lock-lost",
        f"this run lost the lock of the query of `{model}` and stopped it",
        secrets.redact(why),
        "find out why this run was suspended or could not reach its storage; every committed batch is complete",
        location,
    )
