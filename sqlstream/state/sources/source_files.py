"""What a source contains: the files under a path that a stream of files reads, as Spark 4.3's InMemoryFileIndex and
FileStreamSource choose them, and the commits of a Delta table.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import unquote

from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.lag import newest_version
from sqlstream.state.sources.positions import DatedFiles

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"\s*(?P<count>\d+)(?P<unit>ms|s|min|m|h|d)?\s*")
_DEFAULT_AGE = "7d"
_NOT_FOLLOWED = frozenset({"ignoredpathsegmentregex", "basepath"})
_LOCAL_URI = re.compile(r"file:(?://)?(?=/)")


@dataclass(frozen=True)
class FileChoice:
    """The options of a source that decide which files it reads.

    `pattern` matches the names of files, None for all. `is_recursive`: subfolders count, even if they are no
    partitions. `by_name`: two files with the same name are the same. `oldest_age_ms` is how much older than the newest
    file that was read a file can be, None for no limit.
    """

    pattern: str | None = None
    is_recursive: bool = False
    by_name: bool = False
    oldest_age_ms: int | None = 7 * _UNITS_MS["d"]


def file_choice(options: Mapping[str, object]) -> FileChoice | None:
    """Returns what the `options` of a source choose, of which secrets have no part. None if an option is set that only
    Spark can apply.
    """
    given = {name.lower(): value for name, value in options.items() if isinstance(value, str)}
    pattern = given.get("pathglobfilter")
    age = _DURATION.fullmatch(given.get("maxfileage", _DEFAULT_AGE))
    # In these, patterns of Hadoop differ from those of `fnmatch`.
    if given.keys() & _NOT_FOLLOWED or age is None or (pattern is not None and re.search(r"[][{}\\]", pattern)):
        return None
    # Then Spark ignores `maxFileAge`.
    is_limited = given.keys() & {"maxfilespertrigger", "maxbytespertrigger"}
    reads_newest = _is_true(given, "latestfirst") and bool(is_limited)
    return FileChoice(
        pattern,
        _is_true(given, "recursivefilelookup"),
        _is_true(given, "filenameonly"),
        None if reads_newest else int(age["count"]) * _UNITS_MS[age["unit"] or "ms"],
    )


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").strip().lower() == "true"


def chosen_files(stored: Sequence[StoredFile], choice: FileChoice) -> list[StoredFile]:
    """Returns the files of one folder that Spark reads, whose names are relative to it. Of files in subfolders, Spark
    reads those in partitions (`day=1`), all if it is asked to.
    """
    visible = [file for file in stored if not any(map(is_hidden, file.name.split("/")))]
    if not choice.is_recursive and not any("=" in file.name.rpartition("/")[0] for file in visible):
        visible = [file for file in visible if "/" not in file.name]
    return [file for file in visible if choice.pattern is None or fnmatchcase(file_name(file.name), choice.pattern)]


def is_hidden(name: str) -> bool:
    """Returns whether Spark ignores a file or folder with this name."""
    if name.startswith(("_metadata", "_common_metadata")):
        return False
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def unread_files(found: Iterable[StoredFile], read: Mapping[str, int], choice: FileChoice) -> list[StoredFile]:
    """Returns the files among `found`, whose names are absolute paths, that a source has not read and will read. `read`
    is as in `SourcePosition`.
    """
    known = {_key(local_path(uri) or uri, choice) for uri in read}
    age = choice.oldest_age_ms
    oldest = max(read.values()) - age if read and age is not None else None
    return [
        file for file in found if _key(file.name, choice) not in known and (oldest is None or file.modified >= oldest)
    ]


def _key(path: str, choice: FileChoice) -> str:
    return file_name(path) if choice.by_name else path


def local_path(uri: str) -> str | None:
    """Returns the path of an encoded URI of a local file, None for any other URI."""
    local = _LOCAL_URI.match(uri)
    return unquote(uri[local.end() :]) if local else None


def file_name(path: str) -> str:
    """Returns the name of a file."""
    return path.rpartition("/")[2]


# When data was last added to a table of Delta Lake, from its log.
#
# The format is that of https://github.com/delta-io/delta/blob/master/PROTOCOL.md.

DELTA_LOG = "_delta_log"
"""The folder of the log in a table."""


@dataclass(frozen=True)
class _Commit:
    adds_rows: bool
    time_ms: int


def last_rows_added(files: DatedFiles, table: str, *, changes: bool = False) -> int | None:
    """Returns when rows were last added to the table in the folder `table` (ms since 1970), None if never.

    Ignores commits that only rewrite files (OPTIMIZE) or change the table, and those that delete rows; with `changes` a
    deleted row counts like an added one. If such commits are all that is left in the log, returns the time of the
    oldest one: the rows are at least as old.
    Raises: FileNotFoundError if `table` is no table of Delta Lake; OSError.
    """
    log = f"{table}/{DELTA_LOG}"
    newest = newest_version(files.names(log))
    if newest is None:
        raise FileNotFoundError(f"{table} is not a table of Delta Lake")
    oldest: _Commit | None = None
    for version in range(newest, -1, -1):
        path = f"{log}/{version:020d}.json"
        text = files.read_text(path)
        if text is None:
            break
        oldest = _commit(text, files.modified(path), changes=changes)
        if oldest.adds_rows:
            return oldest.time_ms
    else:
        return None  # the log goes back to the first version
    return None if oldest is None else oldest.time_ms


def has_read_changes(files: DatedFiles, table: str, offset: Mapping[str, Any]) -> bool:
    """Returns whether a stream of changes has read all of the version in its offset: after a commit with files of
    changes (`cdc`), Delta's offset stays at the last of them. Raises: OSError.
    """
    text = files.read_text(f"{table}/{DELTA_LOG}/{offset['reservoirVersion']:020d}.json") or ""
    count = sum("cdc" in json.loads(line) for line in text.splitlines() if line)
    return 0 < count <= int(offset["index"]) + 1


def _commit(text: str, modified: float | None, *, changes: bool) -> _Commit:
    """Returns what a commit does, and its time: that in the commit, or else that of its file."""
    adds_rows, info = False, dict[str, Any]()
    for line in text.splitlines():
        action = json.loads(line) if line else {}
        written = [action.get(kind, {}) for kind in (("add", "remove") if changes else ("add",))]
        adds_rows = adds_rows or any(each.get("dataChange") for each in written)
        info = action.get("commitInfo") or info
        if adds_rows and info:
            break
    if info.get("operation") == "DELETE" and not changes:
        adds_rows = False  # it writes the remaining rows of a file again
    time_ms = info.get("inCommitTimestamp") or info.get("timestamp") or (modified or 0) * 1000
    return _Commit(adds_rows, int(time_ms))
