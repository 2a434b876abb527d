"""The files in the output of a file sink: those in its log, and leftovers of batches that never committed.

Spark writes a file under its final name before it commits the batch. If the process is killed in between, the file
stays, and the next run writes the rows of the batch again. Spark reads only the files in the log. Other readers that
list the folder count such rows twice. This follows Spark 4.3's ManifestFileCommitProtocol and FileStreamSinkLog.
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
"""The names of Spark's data files. Each has a UUID, so no two files of an output have the same name."""


@dataclass(frozen=True, order=True)
class StoredFile:
    """A file in storage: its path relative to the listed folder, its size in bytes, and the time of its last change (ms
    since 1970).
    """

    name: str
    size: int
    modified: int


@dataclass(frozen=True)
class CommittedFile:
    """A file that a batch has committed. `batch` is None if Spark has compacted the log since, and for the files of a
    batch model.
    """

    name: str
    size: int
    batch: int | None = None


@dataclass(frozen=True)
class OutputFiles:
    """The data files of an output. `leftover` are Spark's files that no batch has committed; `missing` are the names of
    committed files that no longer exist. `foreign` counts files that Spark has not written, and `expired` those that
    the sink's option `retention` may have removed from the log.
    """

    committed: tuple[CommittedFile, ...] = ()
    leftover: tuple[StoredFile, ...] = ()
    missing: tuple[str, ...] = ()
    foreign: int = 0
    expired: int = 0


@dataclass(frozen=True)
class ModelFiles:
    """The files in the output of one version of a model's query, by their paths relative to the folder `output`. The
    version is 0 before the first run.
    """

    model: str
    version: int
    output: str
    files: OutputFiles


@dataclass(frozen=True)
class Leftovers:
    """Uncommitted files that were moved from the folder `output` to `archive`."""

    output: str
    archive: str
    files: tuple[StoredFile, ...]


@dataclass(frozen=True)
class Repaired:
    """What a repair archived: each entry of a log with its new path, and the uncommitted files of each output."""

    model: str
    moved: tuple[tuple[str, str], ...] = ()
    leftovers: tuple[Leftovers, ...] = ()


def sort_files(stored: Sequence[StoredFile], log: BatchLog, *, with_retention: bool) -> OutputFiles:
    """Returns the files of a stream's output. `log` is the complete log of its sink. `stored` was listed before the log
    was read, so a file that is committed in between never counts as a leftover.

    Only the names of files are compared, because the log has URIs and a folder may have several.
    """
    entries = _log_entries(log)
    data = [file for file in stored if not _is_hidden(file.name)]
    committed = [file for file in data if base_name(file.name) in entries]
    others = [file for file in data if base_name(file.name) not in entries]
    spark = [file for file in others if _BY_SPARK.fullmatch(base_name(file.name))]
    oldest = min((entry.modified for entry in entries.values()), default=None)
    # `retention` removes the oldest entries from the log, so a file older than all entries may have been in one of
    # them.
    expired = {file for file in spark if with_retention and (oldest is None or file.modified < oldest)}
    existing = {base_name(file.name) for file in committed}
    return OutputFiles(
        tuple(CommittedFile(file.name, file.size, entries[base_name(file.name)].batch) for file in committed),
        tuple(file for file in spark if file not in expired),
        tuple(name for name in entries if name not in existing),
        len(others) - len(spark),
        len(expired),
    )


def batch_output(stored: Iterable[StoredFile]) -> OutputFiles:
    """Returns the files of a batch model's output, which is moved into place when it is complete."""
    data = (file for file in stored if not _is_hidden(file.name))
    return OutputFiles(tuple(CommittedFile(file.name, file.size) for file in data))


@dataclass(frozen=True)
class _Entry:
    modified: int
    batch: int | None


def _log_entries(log: BatchLog) -> Mapping[str, _Entry]:
    """Returns the files in the log by their base names."""
    lines = ((number, line) for number in sorted(log.texts) for line in log.texts[number].split("\n")[1:])
    entries: dict[str, _Entry] = {}
    for number, line in lines:
        status = json.loads(line)
        name = base_name(status["path"])
        if status.get("action") == "delete":
            entries.pop(name, None)
        else:
            batch = None if log.is_compact(number) else number
            entries[name] = _Entry(status.get("modificationTime", 0), batch)
    return entries


def base_name(path: str) -> str:
    """Returns the name of a file, by which the log of a sink knows it: each has a UUID."""
    return path.rpartition("/")[2]


def _is_hidden(name: str) -> bool:
    """Returns whether readers ignore a file. Names that begin with `_` are hidden, except partitions (`_day=1`)."""
    return any(part.startswith(".") or (part.startswith("_") and "=" not in part) for part in name.split("/"))


def log_problem(model: str, log: BatchLog, committed: int, location: Location) -> Finding | None:
    """Returns why it is unknown which files are committed, None if the log is complete: it has the last compact entry,
    all later ones, and reaches `committed`, the last batch that the checkpoint committed.
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
