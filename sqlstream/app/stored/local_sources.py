"""The local files of sources: which ones Spark reads, whether they are few and small, and headers of CSV."""

from __future__ import annotations

import bz2
import csv
import glob
import gzip
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain, islice
from pathlib import Path
from typing import IO

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding
from sqlstream.project.configuration.target import Target
from sqlstream.project.files.paths import is_pattern, plain_path
from sqlstream.project.formats.formats import FORMATS
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.batch_logs import SINK_LOG, from_compact
from sqlstream.state.checkpoints import read_log
from sqlstream.state.output_files import StoredFile, sort_files
from sqlstream.state.sources.source_files import FileChoice, chosen_files, file_choice, is_hidden

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

NEWEST_FILES = 20
"""The number of newest files of a source whose headers or types are read."""

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
    try:
        found = (file for table in tables for file in _files_of(str(project.root), table))
        files = list(islice(found, SMALL_RUN_FILES + 1))
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


def header_findings(compiled: CompiledProject, nodes: Collection[str]) -> list[Finding]:
    """Returns a finding for each CSV source in `nodes` (unique ids) with a declared column elsewhere in new files.

    Spark reads CSV by position, so it would read the values of other columns without an error. A header with other
    names is right: so a project can rename columns. With the option `enforceSchema: true`, headers do not count; with
    `schema_changes`, sqlstream finds columns by name.
    """
    found = (_misread_header(compiled, node, compiled.sources[node]) for node in nodes if node in compiled.sources)
    return [finding for finding in found if finding is not None]


def _misread_header(compiled: CompiledProject, node: str, table: SourceTable) -> Finding | None:
    options = {name.lower(): str(value) for name, value in table.options.items()}
    is_checked = options.get("header", "").lower() == "true" and options.get("enforceschema", "").lower() != "true"
    declared = compiled.known_columns(node)
    if table.format != "csv" or not is_checked or table.schema_changes is not None or declared is None:
        return None
    names = [column.name for column in declared]
    with suppress(OSError, EOFError, ValueError, LookupError, csv.Error):  # Spark reports what it cannot read
        for path in newest_files(compiled, table):
            header = _header_of(Path(path), options)
            wrong = _other_position(header, [name for name in names if f"/{name}=" not in path])
            if wrong is not None:
                return _header_finding(table, path, header, wrong)
    return None


def newest_files(compiled: CompiledProject, table: SourceTable, count: int = NEWEST_FILES) -> list[str]:
    """Returns the absolute paths of the newest local files of a source, the newest first. Empty if its files are
    elsewhere or cannot be listed, or if queries write them.
    """
    choice, root = file_choice(table.options), compiled.project.root
    if choice is None or not is_local(table) or table.stored is not None:
        return []
    if not has_local_files(compiled.project.target):
        return []
    files: Sequence[StoredFile] = ()
    with suppress(OSError):
        files = files_at(plain_path(str(root), table.path or ""), choice, root) or ()
    newest = sorted(files, key=lambda file: file.modified, reverse=True)[:count]
    return [file.name for file in newest]


def _header_of(path: Path, options: Mapping[str, str]) -> list[str]:
    """Returns the names in the first line of a CSV file. Raises: OSError, ValueError, and others if it is damaged."""
    openers: dict[str, Callable[..., IO[str]]] = {".gz": gzip.open, ".bz2": bz2.open}
    encoding = options.get("encoding", options.get("charset", "utf-8"))
    with openers.get(path.suffix, open)(path, "rt", encoding=encoding, newline="") as file:
        comment, quote = options.get("comment"), options.get("quote", '"')
        lines = (line for line in file if line.strip() and not (comment and line.startswith(comment)))
        delimiter = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
        if len(delimiter) != 1:
            return []
        if quote:
            header = next(csv.reader(lines, delimiter=delimiter, quotechar=quote), [])
        else:
            header = next(csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE), [])
        return [name.removeprefix("\ufeff").strip() for name in header]


def _other_position(header: Sequence[str], declared: Sequence[str]) -> tuple[str, str] | None:
    """Returns the first declared column that is in the header at another position, and the name at its own position."""
    names = [name.lower() for name in header]
    for position, name in enumerate(declared):
        here = names[position] if position < len(names) else ""
        if here != name.lower() and names.count(name.lower()) == 1:
            return name, header[position] if position < len(header) else ""
    return None


def _header_finding(table: SourceTable, path: str, header: Sequence[str], wrong: tuple[str, str]) -> Finding:
    name, there = wrong
    read = f"the values of {quoted(there)}" if there else "nulls"
    place = table.locations.get(
        "columns", table.locations.get("schema", table.locations.get("schema_file", table.location))
    )
    return Finding(
        "csv-header",
        f"the columns of source {quoted(table.full_name)} are not in the order of the header of {path}",
        f"Spark reads CSV by position, so {quoted(name)} would have {read}; the header is {quoted_list(header)}",
        "declare the columns in the order of the header; or, if the header is wrong, set the option "
        "enforceSchema: true, with which headers do not count",
        place,
    )


def _is_empty(root: str, table: SourceTable) -> bool:
    """Whether Spark would read no file. It ignores files whose names begin with `_` or `.`."""
    try:
        files = islice(_files_of(root, table), SAMPLED_FILES)
        return not any(file.name[0] not in "_." for file in files)
    except OSError:
        return False


def has_local_files(target: Target) -> bool:
    """Whether a path without a scheme is on this machine."""
    if target.remote is not None:
        return False
    return target.is_local and not any(name.endswith("fs.defaultFS") for name in target.spark)


def is_local(table: SourceTable) -> bool:
    """Returns whether `table` reads files at a path that Python and Spark understand in the same way."""
    return is_local_path(table.path or "")


def is_local_path(path: str) -> bool:
    """Returns whether Python and Spark understand a path or pattern in the same way."""
    return bool(path) and ":" not in path.removeprefix("file:") and not set(path) & set("{\\")


def _files_of(root: str, table: SourceTable) -> Iterator[Path]:
    """Yields the files of a local path or pattern. Raises: OSError."""
    found = map(Path, local_matches(plain_path(root, table.path or ""), root) or ())
    for file in chain.from_iterable(entry.rglob("*") if entry.is_dir() else [entry] for entry in found):
        if file.is_symlink() and file.is_dir():
            raise OSError(f"{file} is not followed")
        if file.is_file():
            yield file


def _size(file: Path) -> int:
    size = file.stat().st_size
    return size * COMPRESSION_RATIO if file.name.endswith(_COMPRESSED_SUFFIXES) else size


def files_at(path: str, choice: FileChoice, project: Path | None = None) -> tuple[StoredFile, ...] | None:
    """Returns the files that Spark reads from an absolute path or pattern, named by their absolute paths. In the output
    of a file sink, these are the files that its log contains. None if a path that is no pattern does not exist, or such
    a log is torn. The folder of the `project` is no part of a pattern. Raises: OSError.
    """
    starts = local_matches(path, _existing_folder(path) if project is None else str(project))
    if starts is None:
        return None
    found: list[StoredFile] = []
    for start in starts:
        files = _files_in(start, choice)
        if files is None:
            return None
        found += files
    return tuple(found)


def local_matches(path: str, root: str) -> list[str] | None:
    """Returns the files and folders that an absolute path or pattern means, None if a path that is no pattern does not
    exist. `root`, the folder of the project, is no part of a pattern.
    """
    if not is_pattern(path, root, os.path.exists):
        return [path] if os.path.lexists(path) else None
    start = f"{root.rstrip('/')}/"
    inside = path.startswith(start)
    pattern = glob.escape(start) + path.removeprefix(start) if inside else path
    return sorted(glob.glob(pattern))  # noqa: PTH207 - pathlib refuses some patterns


def _existing_folder(path: str) -> str:
    """Returns the folder in front of the first name in `path` that can only be a pattern."""
    folder = ""
    for name in path.strip("/").split("/")[:-1]:
        if is_pattern(f"{folder}/{name}", folder, os.path.exists):
            break
        folder = f"{folder}/{name}"
    return folder


def _files_in(root: str, choice: FileChoice) -> list[StoredFile] | None:
    if Path(root).is_file():
        parent, _, name = root.rpartition("/")
        return [replace(file, name=root) for file in chosen_files(_stored(parent, [name]), choice)]
    stored = _stored(root, _names(root))
    log = read_log(LocalStorage(), f"{root}/{SINK_LOG}", from_compact)
    if log.torn():
        return None
    chosen = chosen_files(stored, choice)
    if log.names:
        committed = {file.name for file in sort_files(stored, log, with_retention=False).committed}
        chosen = [file for file in stored if file.name in committed]
    return [replace(file, name=f"{root}/{file.name}") for file in chosen]


def _names(root: str) -> Iterator[str]:
    """Yields the files in a folder and its visible subfolders, relative to it."""
    for parent, folders, names in os.walk(root, followlinks=True):
        folders[:] = [name for name in folders if not is_hidden(name)]
        yield from (os.path.relpath(f"{parent}/{name}", root) for name in names)


def _stored(folder: str, names: Iterable[str]) -> list[StoredFile]:
    """Returns the files of `folder` with these names. Leaves out those that were removed since."""
    found = []
    for name in names:
        try:
            status = Path(folder, name).stat()
        except FileNotFoundError:
            continue
        found.append(StoredFile(name, status.st_size, status.st_mtime_ns // 1_000_000))
    return found
