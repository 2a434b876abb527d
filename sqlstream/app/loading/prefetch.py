"""Reads the project's files in another process, so that this process finds them in the system's file cache.

A disk takes as long to find a thousand small files as the compiler takes to parse them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path

from sqlstream.app.loading.processes import Processes
from sqlstream.project.files.files import LARGEST_FILE_BYTES

FOLDERS = ("models", "seeds", "macros", "python")
"""The folders whose visible files are read."""

FILES_WORTH_A_PROCESS = 300
"""The number of model files from which another process saves time. Starting it takes about 10 ms."""


@contextmanager
def prefetch_files(root: Path, workers: Processes | None) -> Iterator[None]:
    """Reads the files of the project at `root` during the body, if there are `workers` and many files."""
    if workers is None or sum(len(names) for _, _, names in os.walk(root / FOLDERS[0])) < FILES_WORTH_A_PROCESS:
        yield
        return
    with workers.beside(partial(_read_all, root)):
        yield


def _read_all(root: Path) -> None:
    """Reads all files and ignores errors. The process that needs a file reports them."""
    for path in _visible_files(root):
        with suppress(OSError, ValueError):
            _read(path)


def _visible_files(root: Path) -> Iterator[str]:
    for folder, folders, names in chain.from_iterable(os.walk(root / top) for top in FOLDERS):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118 - text is faster for thousands of files


def _read(path: str) -> None:
    status = os.stat(path)  # noqa: PTH116
    if stat.S_ISREG(status.st_mode) and status.st_size <= LARGEST_FILE_BYTES:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123
            file.read()
