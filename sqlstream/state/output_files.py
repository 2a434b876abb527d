"""The files in the output of a file sink: which of them its log names, and which a batch has left that never ended.

Spark writes a file under its final name before the batch is committed. Where the process is killed in between, the file
stays, and the next run writes the rows of the batch again. Spark reads only what the log names; readers that take
whatever lies in the folder count such rows twice. After Spark 4.3's ManifestFileCommitProtocol and FileStreamSinkLog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.refusals import refresh_text

_BY_SPARK = re.compile(r"part-\d{5,}-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}[.-]c\d{3,}(?:\..*)?")
"""The names of Spark's data files; each has a UUID, so that no two files of an output have the same name."""


@dataclass(frozen=True, order=True)
class StoredFile:
    """A file in storage: its path relative to the folder that was asked for, its bytes, and when it was last changed
    (ms since 1970).
    """

    name: str
    size: int
    modified: int


@dataclass(frozen=True)
class CommittedFile:
    """A file that a batch has committed. `batch` is None where Spark has compacted the log past it, and for the files
    of a batch model.
    """

    name: str
    size: int
    batch: int | None = None


@dataclass(frozen=True)
class OutputFiles:
    """The data files of an output. `leftover` are Spark's own that no batch has committed; `missing` the names of
    committed files that are gone. `foreign` counts files that Spark has not written, and `expired` those that the
    sink's option `retention` may have taken out of the log.
    """

    committed: tuple[CommittedFile, ...] = ()
    leftover: tuple[StoredFile, ...] = ()
    missing: tuple[str, ...] = ()
    foreign: int = 0
    expired: int = 0


@dataclass(frozen=True)
class ModelFiles:
    """The files in the output of one version of a model's query, by their paths relative to the folder `output`;
    version 0 before the first run.
    """

    model: str
    version: int
    output: str
    files: OutputFiles


@dataclass(frozen=True)
class Leftovers:
    """Files that no batch had committed: they lay in the folder `output`, and lie in `archive` now."""

    output: str
    archive: str
    files: tuple[StoredFile, ...]


@dataclass(frozen=True)
class Repaired:
    """What was put aside: each entry of a log, and where it lies now; and the files that no batch had committed."""

    model: str
    moved: tuple[tuple[str, str], ...] = ()
    leftovers: Leftovers | None = None


def sort_files(stored: Sequence[StoredFile], log: BatchLog, *, with_retention: bool) -> OutputFiles:
    """Returns the files of a stream's output. `log` is that of its sink, whole, `stored` what was listed before the log
    was read: what is committed meanwhile is then never taken for a leftover.

    Files are told apart by their names alone: the log has them as URIs, and the same folder may have several.
    """
    entries = _log_entries(log)
    data = [file for file in stored if not _is_hidden(file.name)]
    committed = [file for file in data if _base(file.name) in entries]
    others = [file for file in data if _base(file.name) not in entries]
    spark = [file for file in others if _BY_SPARK.fullmatch(_base(file.name))]
    oldest = min((entry.modified for entry in entries.values()), default=None)
    expired = {file for file in spark if with_retention and (oldest is None or file.modified < oldest)}
    there = {_base(file.name) for file in committed}
    return OutputFiles(
        tuple(CommittedFile(file.name, file.size, entries[_base(file.name)].batch) for file in committed),
        tuple(file for file in spark if file not in expired),
        tuple(name for name in entries if name not in there),
        len(others) - len(spark),
        len(expired),
    )


def whole_output(stored: Iterable[StoredFile]) -> OutputFiles:
    """Returns the files of a batch model's output, which is put in place when it is complete."""
    data = (file for file in stored if not _is_hidden(file.name))
    return OutputFiles(tuple(CommittedFile(file.name, file.size) for file in data))


@dataclass(frozen=True)
class _Entry:
    modified: int
    batch: int | None


def _log_entries(log: BatchLog) -> Mapping[str, _Entry]:
    """The files that the log names, by their own names."""
    entries: dict[str, _Entry] = {}
    for number in sorted(log.texts):
        batch = None if log.is_compact(number) else number
        for line in log.texts[number].split("\n")[1:]:
            status = json.loads(line)
            name = _base(status["path"])
            if status.get("action") == "delete":
                entries.pop(name, None)
            else:
                entries[name] = _Entry(status.get("modificationTime", 0), batch)
    return entries


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def _is_hidden(name: str) -> bool:
    """Whether a reader passes over a file: `_` begins no hidden name where it is that of a partition (`_day=1`)."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in name.split("/"))


def log_problem(model: str, log: BatchLog, committed: int, location: Location) -> Finding | None:
    """Returns why nobody can tell which files are committed, None where the log is whole: `log` has the entries since
    the last compact one, that one too, and must reach the last batch of the checkpoint's commits, `committed`.
    """
    torn = log.torn()
    if torn:
        what = f"the output log of {quoted(model)} has an incomplete entry"
        why = f"{log.path(torn[0])} is cut off, so it is unknown which files are committed"
        fix = f"run `sqlstream state repair {model}`, or restore the file from a backup"
        return Finding("torn-checkpoint", what, why, fix, location)
    first = min((number for number in log.texts if log.is_compact(number)), default=0)
    lost = [number for number in range(first, max(log.last, committed) + 1) if number not in log.texts]
    if not lost:
        return None
    what = f"the output log of {quoted(model)} lacks {'entries' if lost[1:] else 'an entry'}"
    why = (
        f"batch {lost[0]} is committed, but {log.folder}/{lost[0]} is missing, so it is unknown which files are "
        "committed"
    )
    fix = f"restore it from a backup; or {refresh_text(model)}"
    return Finding("torn-checkpoint", what, why, fix, location)
