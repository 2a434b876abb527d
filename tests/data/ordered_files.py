"""Writes example files the way a file stream must find them: whole, and with rising modification times.

Spark's file source takes files by modification time, in milliseconds. Files that are written in one go, or checked
out by git, may share theirs, so each gets another second; running a generator again restores the order.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

SECONDS_BETWEEN_FILES = 1.0


def write_whole(path: Path, content: bytes, modified: float) -> None:
    """Write a file under a hidden name first, so that a running stream never reads half of it.

    `modified` is the modification time that it gets, in seconds since 1970, before it appears under its own name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.tmp")
    unfinished.write_bytes(content)
    os.utime(unfinished, (modified, modified))
    unfinished.replace(path)


def write_in_order(files: Sequence[tuple[Path, bytes]]) -> None:
    """Write the files so that modification times rise in the given order, and the last one's is now.

    A file that is already there under one of the names is overwritten; any other stays.
    """
    now = time.time()
    for age, (path, content) in zip(reversed(range(len(files))), files, strict=True):
        write_whole(path, content, now - age * SECONDS_BETWEEN_FILES)
