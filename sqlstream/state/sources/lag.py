"""The progress of a query: the versions that a run continues, and how much of each source it has not read yet."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from sqlstream.state.output_files import StoredFile
from sqlstream.state.small_files import FilesOfSink
from sqlstream.state.sources.positions import SourcePosition, VersionPosition

PartitionOffsets = Mapping[str, Mapping[str, int]]
"""Offsets of Kafka: by topic, and by partition as text. The offset of a query is the next record that it reads."""


@dataclass(frozen=True)
class FileLag:
    """The files that were not read yet, and their bytes. `too_old` counts the files that the stream will never read,
    because they are older than `maxFileAge`, and that no backfill has written.
    """

    files: int
    bytes: int
    too_old: int = 0


@dataclass(frozen=True)
class VersionLag:
    """The versions of a table of Delta Lake that were not read, or only in part."""

    versions: int


@dataclass(frozen=True)
class RecordLag:
    """The records of Kafka that were not read, in total and by topic and partition. A transaction marker counts as a
    record, and so does a record that compaction has removed.
    """

    records: int
    partitions: PartitionOffsets


Lag = FileLag | VersionLag | RecordLag


def amount_of(lag: Lag) -> int:
    """Returns the number of files, versions or records that were not read."""
    if isinstance(lag, FileLag):
        return lag.files
    return lag.versions if isinstance(lag, VersionLag) else lag.records


def file_lag(files: Iterable[StoredFile], too_old: int = 0) -> FileLag:
    """Returns the lag of a source that has not read `files`."""
    sizes = [file.size for file in files]
    return FileLag(len(sizes), sum(sizes), too_old)


def delta_lag(offset: Mapping[str, Any], newest: int) -> VersionLag:
    """Returns the lag behind version `newest` of a table. An offset contains the version that is read next."""
    return VersionLag(max(newest - offset["reservoirVersion"] + 1, 0))


def newest_version(names: Iterable[str]) -> int | None:
    """Returns the newest version in the log of a table of Delta Lake with these file names, None if there is none."""
    numbers = (name.removesuffix(".json") for name in names if name.endswith(".json"))
    return max((int(number) for number in numbers if number.isdecimal()), default=None)


def record_lag(offset: PartitionOffsets, first: PartitionOffsets, end: PartitionOffsets) -> RecordLag:
    """Returns the lag of a Kafka source behind the `end` offsets of all partitions of its topics. It reads new
    partitions from their `first` offset, and partitions whose next records were deleted, too.
    """
    behind = {
        topic: {
            partition: max(last - max(offset.get(topic, {}).get(partition, 0), first[topic][partition]), 0)
            for partition, last in partitions.items()
        }
        for topic, partitions in end.items()
    }
    return RecordLag(sum(sum(partitions.values()) for partitions in behind.values()), behind)


@dataclass(frozen=True)
class MeasuredLag:
    """The lag of a query at the Unix time `at`, by source and unit (`files`, `bytes` or `versions`), after its last
    committed `batch`.
    """

    at: float
    sources: Mapping[str, Mapping[str, int]]
    batch: int | None = None


def source_lag(source: Mapping[str, Any]) -> dict[str, int]:
    """Returns the lag of a source after a batch: the `records` of Kafka; empty for other sources, of which Spark
    does not report it. `source` is an entry of `sources` in a `StreamingQueryProgress` as JSON.
    """
    read, latest = (_positions(source.get(key)) for key in ("endOffset", "latestOffset"))
    if not read or not latest:
        return {}
    # a partition without an end offset adds nothing: it is unknown how much of it was read
    return {"records": sum(max(last - read.get(partition, last), 0) for partition, last in latest.items())}


def _positions(offset: object) -> dict[tuple[str, str], int]:
    """Returns the positions of an offset of Kafka by topic and partition, empty for other sources."""
    with suppress(ValueError, TypeError):
        loaded = json.loads(offset) if isinstance(offset, str) else offset
        return dict(_entries(loaded)) if isinstance(loaded, dict) else {}
    return {}


def _entries(offset: Mapping[str, Any]) -> Iterator[tuple[tuple[str, str], int]]:
    for topic, partitions in offset.items():
        if not isinstance(partitions, dict):
            return
        for partition, position in partitions.items():
            yield (topic, partition), int(position)


@dataclass(frozen=True)
class SourceProgress:
    """A source of a version, and its lag; None if it is unknown. `problem` then says why, if there is a reason that a
    user can change.
    """

    position: SourcePosition
    lag: Lag | None = None
    problem: str | None = None

    @property
    def name(self) -> str:
        """The source or stored model as `<namespace>.<table>`, or the name or position in the checkpoint."""
        use = self.position.use
        return use.table if use is not None else f"source {self.position.key}"


@dataclass(frozen=True)
class VersionProgress:
    """A version of a query with the progress of each source. `is_parallel`: it runs in parallel with the current one.
    `is_previous`: it was the current one before, and a process still runs it.

    `holder` is the process that has locked the version, None if there is none. `sinks` are those of files.
    `quarantined_rows` are in quarantine and not released, None if they are not known.
    """

    position: VersionPosition
    sources: tuple[SourceProgress, ...] = ()
    is_parallel: bool = False
    holder: str | None = None
    is_previous: bool = False
    sinks: tuple[FilesOfSink, ...] = ()
    quarantined_rows: int | None = None


@dataclass(frozen=True)
class QueryProgress:
    """A query according to its storage: the `stored` versions in order, and those that a run continues, each with its
    own offsets and watermark: the current one, the parallel one, and the previous one if it still runs.

    `problem` says in one line why the storage could not be read.
    """

    model: str
    unique_id: str
    root: str
    stored: tuple[int, ...] = ()
    versions: tuple[VersionProgress, ...] = ()
    problem: str | None = None

    @property
    def is_started(self) -> bool:
        """Whether the storage has a version of the query."""
        return bool(self.stored)

    @property
    def parallel_seconds(self) -> float | None:
        """How far the watermark of the parallel version is behind that of the current one, in seconds; None if one of
        them is unknown.
        """
        current, beside = (
            next((each.position.watermark_ms for each in self.versions if each.is_parallel is kind), None)
            for kind in (False, True)
        )
        return None if current is None or beside is None else (current - beside) / 1000


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


def add_lags(lags: Iterable[LagByUnit]) -> dict[str, int]:
    """Returns the sums of `lags`, by unit."""
    found: dict[str, int] = {}
    for lag in lags:
        for unit, count in lag.items():
            found[unit] = found.get(unit, 0) + count
    return found


def _counts(lag: Lag | None) -> Iterator[tuple[str, int]]:
    if isinstance(lag, FileLag):
        yield "files", lag.files
        yield "bytes", lag.bytes
    elif isinstance(lag, VersionLag):
        yield "versions", lag.versions
    elif lag is not None:
        yield "records", lag.records
