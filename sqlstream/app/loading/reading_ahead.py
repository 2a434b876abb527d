"""The project's files read by a process beside the one that needs them, which then finds them in the system's memory,
and the YAML among them parsed by one more.

A disk takes as long to find some thousand small files as they take to be parsed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path

from sqlstream.app.loading.kept_yaml import KIND, KeptYaml
from sqlstream.app.loading.processes import Processes
from sqlstream.compiler.cache.memory import Entries, Memory
from sqlstream.errors import FindingsError
from sqlstream.project.configuration.resources import YAML_SUFFIXES
from sqlstream.project.files.files import LARGEST_FILE_BYTES, ProjectFiles

FOLDERS = ("models", "seeds", "macros", "python")
"""The folders of which all that is visible is read."""

FILES_WORTH_A_PROCESS = 300
"""Files of models for which it pays: a process takes some 10 ms."""

YAML_WORTH_A_PROCESS = 100
"""YAML files to be parsed for which it pays: they take some 70 ms."""


@contextmanager
def reading_ahead(root: Path, workers: Processes | None, memory: Memory) -> Iterator[Collection[str]]:
    """Reads the files of the project at `root` as long as the body runs, where there are `workers` and many files.

    Gives the YAML files that are parsed as well, whose entries `memory` awaits: half of those that it does not have.
    """
    names = _models(root) if workers is not None else ()
    if workers is None or len(names) < FILES_WORTH_A_PROCESS:
        yield ()
        return
    unknown = [path for path in sorted(names) if path.endswith(YAML_SUFFIXES) and not memory.has(KIND, path)]
    with ExitStack() as running:
        running.enter_context(workers.beside(partial(_read_all, root)))
        if len(unknown) < YAML_WORTH_A_PROCESS:
            yield ()
            return
        later = unknown[len(unknown) // 2 :]
        entries = running.enter_context(workers.beside(partial(_parse, root, later)))
        running.enter_context(memory.awaiting(entries))
        yield frozenset(later)


def _models(root: Path) -> list[str]:
    """The paths of all files of models, relative to the project."""
    found = ((os.path.relpath(folder, root), names) for folder, _, names in os.walk(root / FOLDERS[0]))
    return [f"{folder}/{name}" for folder, names in found for name in names]


def _parse(root: Path, paths: Iterable[str]) -> Entries:
    """Parses files, and gives what is noted of them; those that are wrong are told by whoever needs them."""
    files, memory = ProjectFiles(root), Memory()
    yaml = KeptYaml(memory)
    for path in paths:
        with suppress(FindingsError):
            yaml.parse(files.read_text(path), path)
    return memory.new


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
