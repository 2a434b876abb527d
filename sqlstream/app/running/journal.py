"""`logs/events.jsonl`: what happens in the runs of a project, one JSON object a line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

EVENTS = "events.jsonl"
MAX_BYTES = 10_000_000
"""The size from which on a file is put aside."""
GENERATIONS = 4
"""Older files that are kept, `events.jsonl.1` the newest of them: 50 MB together."""


class Journal:
    """Appends lines to the newest file. Several processes may do so at once: each line is one write at the end.

    A file that cannot be written never ends a run: `problem` says why the last line is missing, None where it is not.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._path = folder / EVENTS
        self._max_bytes = max_bytes
        self._torn = False
        self.problem: str | None = None

    def append(self, line: str) -> None:
        """Writes one line; `line` has no line end."""
        content = line.encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(b"\n" + content if self._torn else content)
        except OSError as error:
            self.problem = (error.strerror or str(error)).lower()
        else:
            self.problem = None

    def _write(self, content: bytes) -> None:
        with _appended(self._path) as file:
            status = os.fstat(file)
            is_full = status.st_size > 0 and status.st_size + len(content) > self._max_bytes
            if not is_full or not self._put_aside(status.st_ino):
                self._write_whole(file, content)
                return
        with _appended(self._path) as file:
            self._write_whole(file, content)

    def _write_whole(self, file: int, content: bytes) -> None:
        """Writes `content` at once. A full disk may take only a part; the next entry then starts a new line."""
        written = os.write(file, content)
        self._torn = written < len(content)
        if self._torn:
            raise OSError(None, "the disk is full")

    def _put_aside(self, inode: int) -> bool:
        """Makes room for a new file where `inode` is still the newest one; False where another process is doing so."""
        from filelock import lock_descriptor  # seldom needed, and it takes a while to load

        lock = os.open(self._folder / f".{EVENTS}.lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        try:
            if not lock_descriptor(lock, blocking=False):
                return False
            if self._path.stat().st_ino == inode:
                files = journal_files(self._folder)
                for older, newer in pairwise(files):
                    with suppress(FileNotFoundError):
                        newer.replace(older)
        except FileNotFoundError:
            return False
        finally:
            os.close(lock)
        return True


def journal_files(folder: Path) -> tuple[Path, ...]:
    """Returns the files that there may be, the oldest first."""
    return (*(folder / f"{EVENTS}.{number}" for number in range(GENERATIONS, 0, -1)), folder / EVENTS)


@contextmanager
def _appended(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)
