"""Files written whole or not at all: who reads one never sees half of it. A file that holds the content already stays.

Paths are texts and the calls are the system's own, as thousands of files are written at a time.
"""
# ruff: noqa: PTH103, PTH105, PTH108, PTH116, PTH118, PTH120, PTH123

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from sqlstream.app.loading.processes import processes
from sqlstream.errors import UsageError

PARTS_FOR_A_PROCESS = 4
"""Whoever is ready takes the next part, so that all processes end together."""

FILES_WORTH_A_PROCESS = 1_000
"""Files to be written from which on another process pays: they take about 200 ms, and it some 50 ms."""

Content = tuple[str, bytes]
"""A path and what belongs there."""


def write_file(path: str, content: bytes) -> None:
    """Writes a file, and the folders above it that are not there. Raises: UsageError where it cannot be written."""
    if _holds(path, content):
        return
    try:
        _write_aside(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write {path}: {reason}; compile and run write to target/") from error


def write_files(contents: Sequence[Content], last: Callable[[], Content]) -> None:
    """Writes files, and then the one that `last` makes; where they are many, other processes write most of them.

    Raises: UsageError where one cannot be written.
    """
    workers = processes() if len(contents) >= FILES_WORTH_A_PROCESS else None
    count = PARTS_FOR_A_PROCESS * workers.count if workers else 1
    parts = {number: contents[number::count] for number in range(count)}
    made: list[Content] = []

    def make_last() -> int:
        """The work of this process, as long as it takes."""
        made.append(last())
        return -1

    jobs: list[Callable[[], int]] = [make_last, *(partial(_try_part, number, part) for number, part in parts.items())]
    for number in workers.run(jobs) if workers else ():
        parts.pop(number, None)
    for part in parts.values():  # what no process has written is written here, or its fault told
        _write_part(part)
    write_file(*(made or [last()])[0])


def _try_part(number: int, contents: Sequence[Content]) -> int:
    """Returns `number` when all are written, and -1 where one cannot be: the other processes go on."""
    try:
        _write_part(contents)
    except UsageError:
        return -1
    return number


def _write_part(contents: Sequence[Content]) -> None:
    for path, content in contents:
        write_file(path, content)


def _holds(path: str, content: bytes) -> bool:
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size != len(content):
            return False
        with open(path, "rb", buffering=0) as file:
            return file.read() == content
    except OSError:
        return False


def _write_aside(path: str, content: bytes) -> None:
    folder, name = os.path.split(path)
    aside = os.path.join(folder, f".{name}.{os.getpid()}-{threading.get_ident()}")
    try:
        _write(aside, content)
        os.replace(aside, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(aside)
        raise


def _write(path: str, content: bytes) -> None:
    with suppress(FileNotFoundError), open(path, "wb") as file:
        file.write(content)
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
