"""Whether a run is over in seconds: then one quick compiler is better for its JVM than the two that long runs need."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.values import SourceTable, Target

LITTLE_BYTES = 32_000_000
"""Of which the quick compiler alone reads JSON in less time than it saves at the start (18 MB took 9.0 s and not
11.4 s on two cores).
"""

FEW_FILES = 100
"""As each may be a batch of its own."""

COMPRESSED = 10
"""How much larger a compressed file is when it is read."""

_COMPRESSED_SUFFIXES = (
    *(f".{known.name}" for known in FORMATS.values() if known.layout == "typed"),
    *(".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"),
)


def is_small(compiled: CompiledProject, models: Sequence[CompiledModel]) -> bool:
    """Whether `models` end by themselves, and all that they may read are few local files, which are not large."""
    if not all(model.ends for model in models):
        return False
    project = compiled.project
    tables = [table for model in models for table in compiled.sources_of(model.unique_id)]
    has_python = any(model.file.is_python for model in compiled.models.values())  # which may read anything
    if has_python or not has_local_files(project.target) or not tables or not all(map(is_local, tables)):
        return False
    paths = [plain_path(str(project.root), table.path or "") for table in tables]
    try:
        files = list(islice((file for path in paths for file in files_of(path)), FEW_FILES + 1))
        return len(files) <= FEW_FILES and sum(map(_size, files)) <= LITTLE_BYTES
    except OSError:  # what cannot be looked at may be large; Spark says what is wrong
        return False


def has_local_files(target: Target) -> bool:
    """Whether a path without a scheme is one of this machine's."""
    return target.is_local and not any(name.endswith("fs.defaultFS") for name in target.spark)


def is_local(table: SourceTable) -> bool:
    """Returns whether `table` reads files of a path that Python understands as Spark does."""
    path = table.path or ""
    return bool(path) and ":" not in path.removeprefix("file:") and "{" not in path


def files_of(path: str) -> Iterator[Path]:
    """Gives the files of a path or pattern. Raises: OSError."""
    for found in map(Path, glob.iglob(path)):  # noqa: PTH207 - pathlib refuses some patterns
        for file in found.rglob("*") if found.is_dir() else [found]:
            if file.is_symlink() and file.is_dir():
                raise OSError(f"{file} is not followed")
            if file.is_file():
                yield file


def _size(file: Path) -> int:
    size = file.stat().st_size
    return size * COMPRESSED if file.name.endswith(_COMPRESSED_SUFFIXES) else size
