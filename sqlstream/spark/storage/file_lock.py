"""A lock file, which only one process at a time can lock, and which contains the name of that process.

The operating system releases the lock when the process ends, even if it is killed. The file remains; its content is
valid only while it is locked.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import lock_descriptor

from sqlstream.spark.storage.held_lock import LockedError

UNKNOWN_HOLDER = "another process"


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
    except OSError as error:  # a network file system without locks
        raise NoFileLocksError from error
    holder = os.read(descriptor, 1_000).decode(errors="replace").strip()
    raise LockedError(holder or UNKNOWN_HOLDER)


def this_process() -> str:
    """Returns this process and its host for messages, with the current time."""
    return f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
