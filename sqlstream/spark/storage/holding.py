"""One process at a time: a file that the process which has it locks, and in which it says who it is.

The system frees the lock when the process ends, however it ends. Only then may another have it; the file stays, and
what stands in it means nothing while nobody has the lock.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from filelock import lock_descriptor

UNKNOWN_HOLDER = "another process"


class HeldError(Exception):
    """Another process has the file; the message says which one."""


@contextmanager
def holding(path: Path) -> Iterator[None]:
    """Has the file `path`, which is made with the folders above it, for as long as the body runs.

    Where the file system knows no locks, nobody is kept out. Raises: HeldError, OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, is_writable = _open(path)
    try:
        _lock(descriptor)
        if is_writable:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, _myself().encode())
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> tuple[int, bool]:
    """A descriptor of the file, and whether it may be written: to lock the file of another user it need not."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666), True
    except PermissionError:
        return os.open(path, os.O_RDONLY), False


def _lock(descriptor: int) -> None:
    try:
        if lock_descriptor(descriptor, blocking=False):
            return
    except OSError:  # a network's file system may have no locks
        return
    holder = os.read(descriptor, 1_000).decode(errors="replace").strip()
    raise HeldError(holder or UNKNOWN_HOLDER)


def _myself() -> str:
    return f"process {os.getpid()} on {socket.gethostname()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n"
