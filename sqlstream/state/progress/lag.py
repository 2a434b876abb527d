"""How much of a source a query has not read yet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlstream.state.output_files import StoredFile

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
