"""Which of a project's files have changed since they were last looked at."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from sqlstream.project.configuration.resources import RESOURCE_FOLDERS
from sqlstream.project.files.models import MACROS
from sqlstream.project.files.python_files import PYTHON

LOOK_SECONDS = 0.1
"""How often files are looked at. A file's status costs some microseconds: a thousand files are a tenth of that."""

YAML_ENDINGS = (".yml", ".yaml")

LEFT_OVERS = ("~", ".pyc")
"""The endings of what editors and Python keep beside a file."""

Snapshot = Mapping[str, tuple[int, int, int]]
"""By path relative to the root: when the file was modified (ns), its size, and which file it is."""


def take_snapshot(root: Path, others: Collection[str] = (), folders: Collection[str] = ()) -> Snapshot:
    """Returns the state of the YAML files at `root`, of all files in the folders of a project and in `folders`, and of
    `others`.
    """
    found: dict[str, tuple[int, int, int]] = {}
    for name in (*_names_at(root), *others):
        _note(root, root / name, found)
    for folder in (*RESOURCE_FOLDERS, MACROS, PYTHON, *folders):
        for path, _, names in os.walk(root / folder):
            for name in names:
                _note(root, Path(path, name), found)
    return found


def _names_at(root: Path) -> list[str]:
    try:
        return [name for name in os.listdir(root) if name.endswith(YAML_ENDINGS)]  # noqa: PTH208 - names are all
    except OSError:
        return []


def _note(root: Path, path: Path, found: dict[str, tuple[int, int, int]]) -> None:
    if path.name.startswith(".") or path.name.endswith(LEFT_OVERS):
        return
    try:
        status = path.stat()
    except OSError:
        return  # removed in between
    found[path.relative_to(root).as_posix()] = (status.st_mtime_ns, status.st_size, status.st_ino)


def wait_for_change(root: Path, others: Collection[str], before: Snapshot, folders: Collection[str] = ()) -> Snapshot:
    """Returns the state that differs from `before`, once two looks find the same: editors save in steps."""
    while True:
        time.sleep(LOOK_SECONDS)
        now = take_snapshot(root, others, folders)
        if now == before:
            continue
        while (later := _look_again(root, others, folders)) != now:
            now = later
        return now


def _look_again(root: Path, others: Collection[str], folders: Collection[str]) -> Snapshot:
    time.sleep(LOOK_SECONDS)
    return take_snapshot(root, others, folders)


def changed_paths(before: Snapshot, after: Snapshot) -> tuple[str, ...]:
    """Returns the paths of the files that are new, gone or not as they were."""
    return tuple(sorted(path for path in {*before, *after} if before.get(path) != after.get(path)))
