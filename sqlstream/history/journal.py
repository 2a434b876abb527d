"""Reads the lines that were added to the journal since the last time."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

CHUNK_BYTES = 4_000_000
"""The amount of text to read at once: about 1,500 lines, which become one transaction."""

HEAD_BYTES = 1 << 20
"""A longer first line does not identify a file."""

DIGEST_BYTES = 16


@dataclass(frozen=True)
class JournalPart:
    """Complete lines of one journal file, which `head` identifies: the bytes from `start` to `end`."""

    head: bytes
    start: int
    end: int
    lines: Sequence[bytes]


FileState = tuple[int, int, int]


class JournalReader:
    """Reads new lines of the journal files at `paths`, the oldest first.

    A file is identified by its first line, so a rename or a copy does not matter, and an inode that the file system
    uses again is not a problem. Remembers the states of files, to skip those without changes.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = tuple(paths)
        self._done: set[FileState] = set()

    def has_news(self) -> bool:
        """Returns whether a file has changed since it was read to its end."""
        return any(state is not None and state not in self._done for state in map(_state, self._paths))

    def parts(self, offsets: Mapping[bytes, int]) -> Iterator[JournalPart]:
        """Yields the complete lines behind `offsets`, which has how far each file was read, by head. A last line
        without a newline is not complete: it may still be written.
        """
        seen: set[bytes] = set()
        states: set[FileState] = set()
        for path in self._paths:
            try:
                with path.open("rb") as file:
                    state = _state_of(os.fstat(file.fileno()))
                    if state not in self._done:
                        head = _head(file.readline(HEAD_BYTES))
                        if head is not None and head not in seen:
                            seen.add(head)
                            yield from _read(file, head, offsets.get(head, 0))
                    states.add(state)
            except OSError:
                continue
        self._done = states

    def forget(self) -> None:
        """Makes the next call of `parts` look at all files again."""
        self._done = set()


def _read(file: BinaryIO, head: bytes, offset: int) -> Iterator[JournalPart]:
    file.seek(offset)
    rest = b""
    while chunk := file.read(CHUNK_BYTES):
        text, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            start, offset = offset, offset + len(text) + 1
            yield JournalPart(head, start, offset, text.split(b"\n"))


def _state(path: Path) -> FileState | None:
    try:
        return _state_of(path.stat())
    except OSError:
        return None


def _state_of(status: os.stat_result) -> FileState:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _head(line: bytes) -> bytes | None:
    """Returns what identifies the file with this first line, None while the line is not complete."""
    return hashlib.sha256(line).digest()[:DIGEST_BYTES] if line.endswith(b"\n") else None
