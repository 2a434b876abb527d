"""The project's files read by another process, so that this process then finds them in the system's memory.

A disk needs as much time to find some thousand small files as the compiler needs to parse them.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from sqlstream.app.loading.processes import Processes
from sqlstream.project.files.files import LARGEST_FILE_BYTES

FOLDERS = ("models", "seeds", "macros", "python")
"""The folders whose visible files are read."""

FILES_WORTH_A_PROCESS = 300
"""Files of models for which another process pays: starting it takes some 10 ms."""


@contextmanager
def reading_ahead(root: Path, workers: Processes | None) -> Iterator[None]:
    """Reads the files of the project at `root` while the body runs, if there are `workers` and many files."""
    if workers is None or sum(len(names) for _, _, names in os.walk(root / FOLDERS[0])) < FILES_WORTH_A_PROCESS:
        yield
        return
    with workers.beside(partial(_read_all, root)):
        yield


def _read_all(root: Path) -> None:
    """Reads all files and ignores errors: the process that needs a file reports them."""
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
