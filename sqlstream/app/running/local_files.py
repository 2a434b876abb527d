"""The local files that a run reads: whether they are few and small, and which sources have none yet."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import plain_path
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.targets import Target
from sqlstream.project.values import SourceTable

SMALL_RUN_BYTES = 32_000_000
"""The bytes up to which a JVM with only its fast compiler (C1) finishes a run sooner: on two cores, 18 MB of JSON took
9.0 s instead of 11.4 s.
"""

SMALL_RUN_FILES = 100
"""The number of files up to which a run is small, because each may become a batch."""

COMPRESSION_RATIO = 10
"""How much larger a compressed file is when it is read."""

SAMPLED_FILES = 1_000
"""The number of files to check in a source. Few files are hidden, so this many show whether Spark reads any."""

_COMPRESSED_SUFFIXES = (
    *(f".{known.name}" for known in FORMATS.values() if known.layout == "typed"),
    *(".gz", ".bz2", ".zst", ".lz4", ".snappy", ".deflate"),
)


def is_small(compiled: CompiledProject, models: Sequence[CompiledModel]) -> bool:
    """Whether `models` end by themselves and read only a few small local files."""
    if not all(model.ends for model in models):
        return False
    project = compiled.project
    read = [table for model in models for table in compiled.tables_of(model.unique_id)]
    tables = [table for table in read if table.stored is None]  # these models write, or wrote, the other ones
    has_python = any(model.file.is_python for model in compiled.models.values())  # Python may read anything
    if has_python or not has_local_files(project.target) or not tables or not all(map(is_local, tables)):
        return False
    paths = [plain_path(str(project.root), table.path or "") for table in tables]
    try:
        files = list(islice((file for path in paths for file in files_of(path)), SMALL_RUN_FILES + 1))
        return len(files) <= SMALL_RUN_FILES and sum(map(_size, files)) <= SMALL_RUN_BYTES
    except OSError:  # an unreadable file may be large; Spark reports the error
        return False


def empty_source_lines(compiled: CompiledProject, models: Sequence[CompiledModel]) -> Iterator[str]:
    """Yields a line for each table that `models` read from a local folder or pattern without any file."""
    project = compiled.project
    if not has_local_files(project.target):
        return
    for node, table in compiled.sources.items():
        readers = [model.name for model in models if node in compiled.upstream(model.unique_id)]
        if readers and table.corrupt_of is None and is_local(table) and _is_empty(str(project.root), table):
            waiting = f"{', '.join(readers)} {'has' if len(readers) == 1 else 'have'} no data to read from it"
            yield f"{table.full_name} has no files in {table.path} yet; {waiting}"


def _is_empty(root: str, table: SourceTable) -> bool:
    """Whether Spark would read no file. It ignores files whose names begin with `_` or `.`."""
    try:
        files = islice(files_of(plain_path(root, table.path or "")), SAMPLED_FILES)
        return not any(file.name[0] not in "_." for file in files)
    except OSError:
        return False


def has_local_files(target: Target) -> bool:
    """Whether a path without a scheme is on this machine."""
    return target.is_local and not any(name.endswith("fs.defaultFS") for name in target.spark)


def is_local(table: SourceTable) -> bool:
    """Returns whether `table` reads files at a path that Python and Spark understand in the same way."""
    return is_local_path(table.path or "")


def is_local_path(path: str) -> bool:
    """Returns whether Python and Spark understand a path or pattern in the same way."""
    return bool(path) and ":" not in path.removeprefix("file:") and "{" not in path


def files_of(path: str) -> Iterator[Path]:
    """Yields the files of a path or pattern. Raises: OSError."""
    found = map(Path, glob.iglob(path))  # noqa: PTH207 - pathlib refuses some patterns
    for file in chain.from_iterable(entry.rglob("*") if entry.is_dir() else [entry] for entry in found):
        if file.is_symlink() and file.is_dir():
            raise OSError(f"{file} is not followed")
        if file.is_file():
            yield file


def _size(file: Path) -> int:
    size = file.stat().st_size
    return size * COMPRESSION_RATIO if file.name.endswith(_COMPRESSED_SUFFIXES) else size
