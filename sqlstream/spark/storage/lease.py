"""Locks a query on storage without file locks: with a lease, which the run renews until it ends.

See `sqlstream.state.runs.lease_rules` for the files, and for when another run takes over.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS, jvm_process
from sqlstream.spark.storage.hadoop import HadoopStorage, create_new, hadoop_file_system
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.spark.storage.locks import LockedError, LockLostError
from sqlstream.spark.storage.processes import machine_id, process_start, this_process
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.runs.lease_rules import (
    PERIODS_TO_EXPIRE,
    PERIODS_TO_LIVE,
    Availability,
    Holder,
    Observer,
    beat_name,
    holder_name,
    newest_token,
    read_holder,
    released_name,
    token_of,
)

UNKNOWN_RUN = "another run"

LOOKS_PER_PERIOD = 10
"""How often a run that waits looks at the files."""

CHECK_SECONDS = 0.1
"""How often a run that waits checks whether it should stop."""

_ERRORS = (OSError, *SPARK_ERRORS)

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Linux's clock that also counts while the machine sleeps."""


def _now() -> float:
    return time.clock_gettime(_CLOCK)


def this_holder(period: float) -> Holder:
    """Returns this process and its JVM as the holder of a lease, with `period` seconds between two heartbeats."""
    numbers = [os.getpid(), jvm_process()]
    processes = tuple((pid, process_start(pid) or "") for pid in numbers if pid is not None)
    return Holder(uuid4().hex, this_process(), machine_id(), processes, period)


@dataclass(frozen=True)
class Look:
    """What the files of a lease say at the time `at` of the monotonic clock: the newest token (0: none), the run that
    has taken it if that is known, and whether another run can take the next one.
    """

    token: int
    holder: Holder | None
    availability: Availability
    at: float

    @property
    def name(self) -> str:
        """The name of the run that has taken the token."""
        return self.holder.name if self.holder is not None else UNKNOWN_RUN


class LeaseWatch:
    """Looks at the lease of a query again and again, and takes nothing. Remembers what it has seen, because only time
    shows whether a run is alive.
    """

    def __init__(self) -> None:
        self._observer = self._new_observer()
        self._known: tuple[int, Holder] | None = None

    def look(self, files: LeaseFiles) -> Look:
        """Returns what the files say now. Raises: OSError, Spark's errors."""
        names = files.names()
        token = newest_token(names)
        is_known = self._known is not None and self._known[0] == token
        holder = self._known[1] if self._known is not None and is_known else self._read(files, token)
        at = _now()
        found = self._observer.judge(names, holder, at)
        if found is Availability.FREE and is_known:
            # on some storage the last of two creators stays, and only the first one may be dead
            holder = self._read(files, token)
            found = self._observer.judge(names, holder, at)
        return Look(token, holder, found, at)

    def _read(self, files: LeaseFiles, token: int) -> Holder | None:
        holder = read_holder(files.read(holder_name(token))) if token else None
        self._known = (token, holder) if holder is not None else None
        return holder

    def start_again(self) -> None:
        """Forgets what it has seen of a run that is alive: from the next look on, the time without a sign counts."""
        self._observer = self._new_observer()

    def _new_observer(self) -> Observer:
        return Observer(machine_id(), process_start)


@contextmanager
def lease(
    files: LeaseFiles,
    holder: Holder,
    waiting: Callable[[str], None],
    check: Callable[[], None] = lambda: None,
    watch: LeaseWatch | None = None,
) -> Iterator[Lease]:
    """Takes the query for `holder` while the body runs, and renews its lease. `watch` has watched its files so far.

    If another run has the query, waits until a sign of life or of death, at most `PERIODS_TO_EXPIRE` of its periods,
    after passing a message to `waiting`. It calls `check` while it waits, which can raise to end that.
    Raises: LockedError, OSError, Spark's errors.
    """
    held = _take(files, holder, waiting, check, watch or LeaseWatch())
    try:
        yield held
    finally:
        held.release()


def _take(
    files: LeaseFiles, holder: Holder, waiting: Callable[[str], None], check: Callable[[], None], watch: LeaseWatch
) -> Lease:
    has_waited = False
    while True:
        found = watch.look(files)
        if found.availability is Availability.HELD:
            raise LockedError(found.name)
        if found.availability is Availability.FREE and _claim(files, holder, found.token + 1):
            return Lease(files, holder, found.token + 1, found.at)
        period = (found.holder or holder).period
        if not has_waited and found.availability is Availability.UNKNOWN:
            most = PERIODS_TO_EXPIRE * period
            waiting(f"waiting at most {most:.0f} s to see whether {found.name} is still active")
            has_waited = True
        until = _now() + period / LOOKS_PER_PERIOD
        while _now() < until:
            check()
            time.sleep(min(CHECK_SECONDS, max(until - _now(), 0.0)))
        check()


def _claim(files: LeaseFiles, holder: Holder, token: int) -> bool:
    """Returns whether `holder` has taken `token`. Then removes the files of earlier tokens.

    A run that was stopped for long can create a token that has been removed, and then finds a higher one.
    """
    # read again: on some storage the last of two creators stays, and both creations succeed
    if not files.create(holder_name(token), holder.text) or files.read(holder_name(token)) != holder.text:
        return False
    names = files.names()
    if newest_token(names) != token:
        return False
    for name in names:
        if (token_of(name) or token) < token:
            with suppress(*_ERRORS):  # nothing reads them
                files.remove(name)
    return True


class Lease:
    """A lease that this process has taken at the time `renewed` of the monotonic clock. A thread renews it.

    A process that could not renew it for `PERIODS_TO_LIVE` has lost it, unless it did not run itself. Then it takes the
    next token: this fails if another run has taken over.
    """

    def __init__(self, files: LeaseFiles, holder: Holder, token: int, renewed: float) -> None:
        self._files, self._holder, self._token = files, holder, token
        self._renewed, self._beat = renewed, 0
        self._lost: str | None = None
        self._stop: Callable[[], None] = lambda: None
        self._mutex, self._is_ending = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._keep, name="sqlstream lease", daemon=True)
        self._thread.start()

    @property
    def lost(self) -> str | None:
        return self._lost

    def renew(self) -> None:
        with self._mutex:
            if self._lost is None:
                self._try_renewal()
            if self._lost is not None:
                self._is_ending.set()

    def confirm(self) -> None:
        if self._is_late():
            self.renew()
        if self._lost is not None:
            raise LockLostError(self._lost)

    def when_lost(self, stop: Callable[[], None]) -> None:
        self._stop = stop
        if self._lost is not None:  # the thread may have ended
            threading.Thread(target=stop, name="sqlstream lost lease", daemon=True).start()

    def release(self) -> None:
        """Gives the query back, and stops renewing. If the storage does not respond, the lease expires."""
        self._is_ending.set()
        self._thread.join(PERIODS_TO_LIVE * self._holder.period)
        with suppress(*_ERRORS):
            if self._lost is None:
                self._files.create(released_name(self._token))

    def _keep(self) -> None:
        while not self._is_ending.wait(0 if self._is_late() else self._holder.period):
            self.renew()
        if self._lost is not None:
            self._stop()

    def _is_late(self) -> bool:
        return _now() - self._renewed > PERIODS_TO_LIVE * self._holder.period

    def _try_renewal(self) -> None:
        began, was_late = _now(), self._is_late()
        try:
            newest = newest_token(self._files.names())
            other = read_holder(self._files.read(holder_name(newest)))
            if other is None or other.id != self._holder.id:
                self._lost = f"{other.name if other else UNKNOWN_RUN} has taken over"
                return
            self._token = newest  # it is higher if the storage created it, but did not answer
            if was_late:
                self._take_next()
            else:
                self._write_beat()
        except _ERRORS as error:
            if self._is_late():
                self._lost = f"its lock could not be renewed: {read_error(error).message}"
            return
        # One that took too long may be too late: then the next takes another token. Counts from before the request,
        # because the storage may have answered at any time since.
        if was_late or not self._is_late():
            self._renewed = began

    def _take_next(self) -> None:
        if _claim(self._files, self._holder, self._token + 1):
            self._token, self._beat = self._token + 1, 0
        else:
            self._lost = f"{UNKNOWN_RUN} has taken over"

    def _write_beat(self) -> None:
        self._beat += 1
        self._files.create(beat_name(self._token, self._beat))
        if self._beat > 1:
            self._files.remove(beat_name(self._token, self._beat - 1))


class LeaseFiles(Protocol):
    """The files in the folder of a lease. Each method raises OSError or Spark's errors."""

    def names(self) -> tuple[str, ...]:
        """Returns the names of all files, none if the folder does not exist."""

    def changed(self) -> Mapping[str, float]:
        """Returns when each file was last changed, in seconds since 1970, by its name."""

    def read(self, name: str) -> str | None:
        """Returns the text of a file, None if it does not exist."""

    def create(self, name: str, text: str = "") -> bool:
        """Creates a file, and its folder, and returns whether it is this text that the file now contains: if the file
        exists, it does not change.
        """

    def remove(self, name: str) -> None:
        """Removes a file if it exists."""


def lease_files(storage: Storage, folder: str) -> LeaseFiles:
    """Returns a folder of `storage` whose files can be created once and removed."""
    return HadoopLeaseFiles(storage.session, folder) if isinstance(storage, HadoopStorage) else LocalLeaseFiles(folder)


class LocalLeaseFiles:
    """A folder of the local file system, perhaps a network file system without locks."""

    def __init__(self, folder: str) -> None:
        self._storage, self._folder = LocalStorage(), folder

    def names(self) -> tuple[str, ...]:
        return self._storage.names(self._folder)

    def changed(self) -> dict[str, float]:
        return {file.name: file.modified / 1000 for file in self._storage.files(self._folder)}

    def read(self, name: str) -> str | None:
        return self._storage.read_text(f"{self._folder}/{name}")

    def create(self, name: str, text: str = "") -> bool:
        path = Path(self._folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("x", encoding="utf-8") as file:
                file.write(text)
        except FileExistsError:
            return self.read(name) == text
        return True

    def remove(self, name: str) -> None:
        Path(self._folder, name).unlink(missing_ok=True)


class HadoopLeaseFiles:
    """A folder in one of Hadoop's file systems. It works until the JVM ends, also after Spark has stopped.

    Object stores charge for requests, so nothing asks whether a file exists before it is needed.
    """

    def __init__(self, session: SparkSession, folder: str) -> None:
        self._system, self._make_path = hadoop_file_system(session, folder)
        self._folder = folder

    def names(self) -> tuple[str, ...]:
        return tuple(status.getPath().getName() for status in self._listed())

    def changed(self) -> dict[str, float]:
        return {status.getPath().getName(): status.getModificationTime() / 1000 for status in self._listed()}

    def _listed(self) -> Sequence[Any]:
        folder = self._make_path(self._folder)
        try:
            found: Sequence[Any] = self._system.listStatus(folder)
        except SPARK_ERRORS:
            if self._system.exists(folder):
                raise
            return ()
        return found

    def read(self, name: str) -> str | None:
        path = self._path(name)
        try:
            stream = self._system.open(path)
        except SPARK_ERRORS:
            if self._system.exists(path):
                raise
            return None
        try:
            return bytes(stream.readAllBytes()).decode("utf-8", errors="replace")
        finally:
            stream.close()

    def create(self, name: str, text: str = "") -> bool:
        """Object stores check only when the file is closed. Some do not check whether another process creates the file
        at the same time: then the last one stays.
        """
        try:
            stream = create_new(self._system, self._path(name))
            try:
                stream.write(bytearray(text.encode("utf-8")))
            finally:
                stream.close()
        except SPARK_ERRORS:
            found = self.read(name)
            if found is None:
                raise
            return found == text
        return True

    def remove(self, name: str) -> None:
        self._system.delete(self._path(name), False)

    def _path(self, name: str) -> object:
        return self._make_path(f"{self._folder}/{name}")
