"""Watches a project's files for changes."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from itertools import chain
from pathlib import Path

from sqlstream.project.configuration.resources import RESOURCE_FOLDERS
from sqlstream.project.declarations.models import GENERIC_TESTS, MACROS
from sqlstream.project.files.python_files import PYTHON

POLL_SECONDS = 0.1
"""How often files are checked. Checking a thousand files takes a tenth of this time."""

YAML_ENDINGS = (".yml", ".yaml")

IGNORED_ENDINGS = ("~", ".pyc")
"""The endings of files that editors and Python create beside a file."""

FileState = tuple[int, int, int]
"""The time of the last change (ns), the size (bytes) and the inode."""

Snapshot = Mapping[str, FileState]
"""The states of files by path, relative to the root."""


def take_snapshot(root: Path, others: Collection[str] = (), folders: Collection[str] = ()) -> Snapshot:
    """Returns the states of the YAML files in `root`, of all files in the project's folders and in `folders`, and of
    `others`.
    """
    walked = chain.from_iterable(
        os.walk(root / folder) for folder in (*RESOURCE_FOLDERS, MACROS, GENERIC_TESTS, PYTHON, *folders)
    )
    below = (Path(folder, name) for folder, _, names in walked for name in names)
    states = ((path, _state(path)) for path in chain((root / name for name in (*_yaml_names(root), *others)), below))
    return {path.relative_to(root).as_posix(): state for path, state in states if state is not None}


def _yaml_names(root: Path) -> list[str]:
    try:
        return [name for name in os.listdir(root) if name.endswith(YAML_ENDINGS)]  # noqa: PTH208 - only names are needed
    except OSError:
        return []


def _state(path: Path) -> FileState | None:
    """Returns the state of a file; None for hidden and ignored files, and for a file that was just removed."""
    if path.name.startswith(".") or path.name.endswith(IGNORED_ENDINGS):
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def wait_for_change(root: Path, others: Collection[str], before: Snapshot, folders: Collection[str] = ()) -> Snapshot:
    """Returns the first snapshot that differs from `before` and is stable for one poll, since editors save in steps."""
    previous = before
    while True:
        time.sleep(POLL_SECONDS)
        now = take_snapshot(root, others, folders)
        if now == previous != before:
            return now
        previous = now


def changed_paths(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Returns the paths of files that are new, removed or changed."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))
