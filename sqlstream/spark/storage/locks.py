"""Locks of queries while a run has them, and lock files, which only one process at a time can lock.

A lock file contains the name of the process that has locked it. The operating system releases the lock when the process
ends, even if it is killed. The file remains; its content is valid only while it is locked.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from filelock import lock_descriptor

from sqlstream.spark.storage.processes import this_process

try:
    import fcntl
except ImportError:  # Windows, where no query can run
    fcntl = None  # type: ignore[assignment]

UNKNOWN_HOLDER = "another process"

PROBE_SECONDS = 0.05
"""The time after which a file is tried again: `lock_holder` of another process may have locked it for a moment."""


class LockedError(Exception):
    """Another process has locked the query; the message names it."""


class LockLostError(Exception):
    """The run has lost its lock, and must not write any more; the message says why."""


class HeldLock(Protocol):
    """A lock that this process has. On some storage it can be lost: another run takes over from one that stalls."""

    @property
    def lost(self) -> str | None:
        """Why the lock is lost, None while it is not."""

    def renew(self) -> None:
        """Asks the storage whether the lock is lost, and renews it."""

    def confirm(self) -> None:
        """Checks that no other run can have the lock. Fast if it was renewed recently. Raises: LockLostError."""

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Calls `stop` once the lock is lost, in another thread. Replaces the function of an earlier call."""


class KeptLock:
    """A lock that cannot be lost: the operating system keeps it until the process ends."""

    lost = None

    def renew(self) -> None:
        """Does nothing."""

    def confirm(self) -> None:
        """Does nothing."""

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Does nothing."""


class NoFileLocksError(Exception):
    """The file system has no locks."""


@contextmanager
def file_lock(path: Path) -> Iterator[None]:
    """Locks the file `path` while the body runs, and creates it with its folders if needed.

    Raises: LockedError, NoFileLocksError, OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, is_writable = _open(path)
    try:
        _lock(descriptor)
        if is_writable:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{this_process()}\n".encode())
        yield
    finally:
        os.close(descriptor)


def lock_holder(path: Path) -> str | None:
    """Returns the process that has locked the file `path`, None if there is none. Changes nothing.

    None also where the file system has no locks. Raises: OSError.
    """
    try:
        return file_lock_holder(path)
    except NoFileLocksError:
        return None


def file_lock_holder(path: Path) -> str | None:
    """Returns what `lock_holder` does. Raises: NoFileLocksError, OSError.

    A shared lock, which is released at once, shows whether another process has locked the file. Always None on Windows,
    where no query can run.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        holder = os.read(descriptor, 1_000).decode(errors="replace").strip()
        return None if _is_free(descriptor) else holder or UNKNOWN_HOLDER
    finally:
        os.close(descriptor)


def _is_free(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:  # a network file system without locks
        raise NoFileLocksError from error
    return True


def _open(path: Path) -> tuple[int, bool]:
    """Returns a descriptor of the file, and whether it is writable; a read-only file of another user is enough."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666), True
    except PermissionError:
        return os.open(path, os.O_RDONLY), False


def _lock(descriptor: int) -> None:
    try:
        if lock_descriptor(descriptor, blocking=False):
            return
        time.sleep(PROBE_SECONDS)
        if lock_descriptor(descriptor, blocking=False):
            return
    except OSError as error:  # a network file system without locks
        raise NoFileLocksError from error
    holder = os.read(descriptor, 1_000).decode(errors="replace").strip()
    raise LockedError(holder or UNKNOWN_HOLDER)
