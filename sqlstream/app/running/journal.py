"""`logs/events.jsonl`: the events of all runs of a project, one JSON object per line."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

EVENTS = "events.jsonl"
MAX_BYTES = 10_000_000
"""The size at which a file is rotated."""
GENERATIONS = 4
"""The number of older files to keep, `events.jsonl.1` being the newest: 50 MB in total."""


class Journal:
    """Appends lines to the newest file. Several processes may append at once, because each line is a single write.

    A file that cannot be written never ends a run. `problem` says why the last line was not written, None if it was.
    `on_rotate` is called after this process has renamed the files.
    """

    def __init__(self, folder: Path, max_bytes: int = MAX_BYTES) -> None:
        self._folder = folder
        self._path = folder / EVENTS
        self._max_bytes = max_bytes
        self._has_partial_line = False
        self.problem: str | None = None
        self.on_rotate: Callable[[], None] = lambda: None

    def append(self, line: str) -> None:
        """Writes `line`, which has no newline."""
        content = line.encode("utf-8", "backslashreplace") + b"\n"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._write(b"\n" + content if self._has_partial_line else content)
        except OSError as error:
            self.problem = (error.strerror or str(error)).lower()
        else:
            self.problem = None

    def _write(self, content: bytes) -> None:
        with _appended(self._path) as file:
            status = os.fstat(file)
            is_full = status.st_size > 0 and status.st_size + len(content) > self._max_bytes
            if not is_full or not self._rotate(status.st_ino):
                self._write_once(file, content)
                return
        with _appended(self._path) as file:
            self._write_once(file, content)

    def _write_once(self, file: int, content: bytes) -> None:
        """Writes `content` in one call. If the disk is full and only a part fits, the next entry starts a new line."""
        written = os.write(file, content)
        self._has_partial_line = written < len(content)
        if self._has_partial_line:
            raise OSError(None, "the disk is full")

    def _rotate(self, inode: int) -> bool:
        """Renames all files if `inode` is still the newest one. Returns False if another process is renaming them."""
        from filelock import lock_descriptor  # slow to import and rarely needed

        lock = os.open(self._folder / f".{EVENTS}.lock", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        try:
            if not lock_descriptor(lock, blocking=False):
                return False
            if self._path.stat().st_ino == inode:
                _rename_files(self._folder)
                self.on_rotate()
        except FileNotFoundError:
            return False
        finally:
            os.close(lock)
        return True


def _rename_files(folder: Path) -> None:
    for older, newer in pairwise(journal_files(folder)):
        with suppress(FileNotFoundError):
            newer.replace(older)


def journal_files(folder: Path) -> tuple[Path, ...]:
    """Returns the paths of all possible files, the oldest first."""
    return (*(folder / f"{EVENTS}.{number}" for number in range(GENERATIONS, 0, -1)), folder / EVENTS)


@contextmanager
def _appended(path: Path) -> Iterator[int]:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        yield file
    finally:
        os.close(file)
