"""The lag of queries, from their checkpoints and the local files of their sources, where Spark's batches do
not report it.
"""

from __future__ import annotations

import glob
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from sqlstream.project.files.paths import is_pattern
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.batch_logs import SINK_LOG, from_compact
from sqlstream.state.checkpoints import read_log
from sqlstream.state.output_files import StoredFile, sort_files
from sqlstream.state.progress.lag import FileLag, Lag, VersionLag, VersionProgress
from sqlstream.state.progress.source_files import FileChoice, chosen_files, is_hidden

SHARE = 50
"""Reading takes at most 1/50 of the time."""

LagByUnit = Mapping[str, int]
"""A lag by unit: `files` and `bytes`, `versions` or `records`."""


class Pace:
    """When to read checkpoints again: every `seconds`, and less often if that is slow."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = self._next = 0.0

    def begin(self) -> bool:
        """Returns whether it is time to read. Call `end` after it."""
        self._began = time.monotonic()
        return self._began >= self._next

    def end(self) -> float:
        """Sets the time of the next reading, and returns the seconds until then."""
        now = time.monotonic()
        wait = max(self._seconds, SHARE * (now - self._began))
        self._next = now + wait
        return wait


def source_lags(version: VersionProgress) -> dict[str, LagByUnit]:
    """Returns what a version has not read yet, by source; of several readers of one table, what the slowest has left.
    Leaves out sources of which it is unknown.
    """
    found: dict[str, dict[str, int]] = {}
    for source in version.sources:
        for unit, count in _counts(source.lag):
            units = found.setdefault(source.name, {})
            units[unit] = max(units.get(unit, 0), count)
    return dict(found)


def total(lags: Mapping[str, LagByUnit]) -> LagByUnit | None:
    """Returns the sums over all sources, None without any."""
    found: dict[str, int] = {}
    for lag in lags.values():
        for unit, count in lag.items():
            found[unit] = found.get(unit, 0) + count
    return found or None


def _counts(lag: Lag | None) -> Iterator[tuple[str, int]]:
    if isinstance(lag, FileLag):
        yield "files", lag.files
        yield "bytes", lag.bytes
    elif isinstance(lag, VersionLag):
        yield "versions", lag.versions
    elif lag is not None:
        yield "records", lag.records


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
        files = _files_of(start, choice)
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


def _files_of(root: str, choice: FileChoice) -> list[StoredFile] | None:
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
