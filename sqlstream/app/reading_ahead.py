"""The project's files read by a process beside the one that needs them, which then finds them in the system's memory.

A disk takes as long to find some thousand small files as they take to be parsed.
"""

from __future__ import annotations

import os
import stat
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import accumulate
from pathlib import Path

from sqlstream.app.processes import Processes
from sqlstream.project.files import LARGEST_FILE_BYTES

FOLDERS = ("models", "seeds", "macros", "python")
"""The folders of which all that is visible is read."""

FILES_WORTH_A_PROCESS = 300
"""Files of models for which it pays: a process takes some 10 ms."""


def reading_ahead(root: Path, workers: Processes | None) -> AbstractContextManager[object]:
    """Reads the files of the project at `root` as long as the body runs, where there are `workers` and many files."""
    if workers is None or not _has_many_models(root):
        return nullcontext()
    return workers.beside(partial(_read_all, root))


def _has_many_models(root: Path) -> bool:
    counts = accumulate(len(names) for _, _, names in os.walk(root / FOLDERS[0]))
    return any(count >= FILES_WORTH_A_PROCESS for count in counts)


def _read_all(root: Path) -> None:
    """Reads all files, and makes nothing of them: what is wrong with one is told by whoever needs it."""
    for top in FOLDERS:
        for folder, folders, names in os.walk(root / top):
            folders[:] = [name for name in folders if not name.startswith(".")]
            for name in names:
                with suppress(OSError, ValueError):
                    _read(os.path.join(folder, name))  # noqa: PTH118 - paths as text: there are thousands of files


def _read(path: str) -> None:
    status = os.stat(path)  # noqa: PTH116
    if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE_BYTES:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            file.read()
