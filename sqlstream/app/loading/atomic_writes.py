"""Writes files atomically, so that readers never see a partial file. A file with the same content stays untouched.

Paths are text, and calls go to `os` directly, because compiling writes thousands of files at a time.
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
"""A process that is free takes the next part, so that all processes end at about the same time."""

FILES_WORTH_A_PROCESS = 1_000
"""The number of files from which other processes save time. They take about 200 ms, starting a process about 50 ms."""

Content = tuple[str, bytes]
"""A path and the content to write there."""


def write_file(path: str, content: bytes) -> None:
    """Writes a file, and creates missing folders above it. Raises: UsageError if it cannot be written."""
    if _holds(path, content):
        return
    try:
        _write_aside(path, content)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise UsageError(f"cannot write {path}: {reason}") from error


def write_files(contents: Sequence[Content], last: Callable[[], Content]) -> None:
    """Writes `contents`, and then the file that `last` returns. Other processes write most of them if there are many.

    Raises: UsageError if a file cannot be written.
    """
    workers = processes() if len(contents) >= FILES_WORTH_A_PROCESS else None
    count = PARTS_FOR_A_PROCESS * workers.count if workers else 1
    parts = {number: contents[number::count] for number in range(count)}
    made: list[Content] = []

    def make_last() -> int:
        """The first job, which this process runs itself. Returns a number that no part has."""
        made.append(last())
        return -1

    jobs: list[Callable[[], int]] = [make_last, *(partial(_try_part, number, part) for number, part in parts.items())]
    for number in workers.run(jobs) if workers else ():
        parts.pop(number, None)
    for part in parts.values():  # parts that no process could write: write them here, or raise the error
        _write_part(part)
    write_file(*(made or [last()])[0])


def _try_part(number: int, contents: Sequence[Content]) -> int:
    """Returns `number` if all files were written, or -1 if one was not, so that the other processes continue."""
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
