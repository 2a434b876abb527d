"""The logs of a checkpoint and of a file sink, as Spark writes them: one file per batch, with `v1` and lines of JSON.

The format follows Spark 4.3's HDFSMetadataLog, OffsetSeqLog and CompactibleFileStreamLog.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

OFFSETS_LINES, COMMITS_LINES = 2, 1
"""The minimum number of lines of an entry: an offsets entry has one for the batch and one for each source."""

FILES, KAFKA, DELTA = "files", "kafka", "delta"
"""The forms of offsets. Sources of the first two also write logs: entries that name new files, and the offsets that
Kafka started with.
"""

SINK_LOG = "_spark_metadata"
"""The folder inside the output of a file sink that contains its log."""

_ENTRY = re.compile(r"(?P<number>[0-9]+)(?P<compact>\.compact)?\Z")
_VERSION = re.compile(r"v[0-9]+\Z")
_NAMED = re.compile(r"[A-Za-z_]\w*:(?=.)")
"""The text before the offset of a source that the checkpoint knows by name."""


@dataclass(frozen=True)
class BatchLog:
    """One log: the names of its entries by their number, and the texts of the entries that were read. A complete entry
    has at least `lines` lines below its version.
    """

    folder: str
    names: Mapping[int, str] = field(default_factory=dict)
    texts: Mapping[int, str] = field(default_factory=dict)
    lines: int = 0

    def path(self, number: int) -> str:
        """Returns the file of an entry."""
        return f"{self.folder}/{self.names[number]}"

    def is_compact(self, number: int) -> bool:
        """Returns whether an entry contains all earlier ones, which may then be missing."""
        return self.names[number].endswith(".compact")

    def torn(self) -> list[int]:
        """Returns the numbers of the entries that were read and are incomplete."""
        return [number for number, text in self.texts.items() if not is_complete(text, self.lines)]

    @property
    def last(self) -> int:
        """The number of the last entry, -1 if there is none."""
        return max(self.names, default=-1)


@dataclass(frozen=True)
class BatchLogs:
    """All logs of a query. `sources` has the name or position of each source in the checkpoint; `sink` is the log of a
    file sink. `identity` is the file with the query's id, and its text if it exists.
    """

    offsets: BatchLog
    commits: BatchLog
    sources: Mapping[str, BatchLog]
    sink: BatchLog | None = None
    identity: tuple[str, str | None] = ("metadata", None)


def entry_names(names: Iterable[str]) -> dict[int, str]:
    """Returns the entries among the `names` in a log's folder by their number. A compact entry replaces a plain one."""
    found: dict[int, str] = {}
    # `9` sorts before `9.compact`, which so replaces it.
    for name in sorted(names):
        match = _ENTRY.match(name)
        if match is not None:
            found[int(match["number"])] = name
    return found


def last_entry(names: Iterable[str]) -> int:
    """Returns the number of the last entry among the `names` in a log's folder, -1 without one."""
    return max(entry_names(names), default=-1)


def after_compact(names: Mapping[int, str]) -> list[int]:
    """Returns the numbers of the entries after the last compact one, which Spark reads together with it."""
    start = max((number for number, name in names.items() if name.endswith(".compact")), default=-1)
    return [number for number in names if number > start]


def from_compact(names: Mapping[int, str]) -> list[int]:
    """Returns the numbers of the last compact entry and all after it, which contain the whole log."""
    compact = [number for number, name in names.items() if name.endswith(".compact")]
    return [*([max(compact)] if compact else ()), *after_compact(names)]


def is_complete(text: str, minimum: int) -> bool:
    """Returns whether an entry is complete: the version, then at least `minimum` lines of JSON, `-` or a named offset.
    A continuous query leaves the line of the batch empty.
    """
    version, *lines = text.split("\n")
    if len(lines) > 1 and not lines[0]:
        del lines[0]
        minimum -= 1
    return _VERSION.match(version) is not None and len(lines) >= minimum and all(map(_is_value, lines))


def _is_value(line: str) -> bool:
    return line == "-" or is_json(_NAMED.sub("", line, count=1))


def is_json(text: str) -> bool:
    """Returns whether a text is one JSON value."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def log_offsets(text: str) -> dict[str, int]:
    """Returns the last entry of its log that a batch has read, for each file source. `text` is a complete entry of the
    offsets log.
    """
    return {name: value["logOffset"] for name, value in source_offsets(text) if form_of(value) == FILES}


def source_offsets(text: str) -> Iterator[tuple[str, Any]]:
    """Yields the name or position of each source in an entry of the offsets log, and its offset, None for no offset.

    `text` is a complete entry.
    """
    # Above are the version, and the line of the batch: its watermark and settings.
    for position, line in enumerate(text.split("\n")[2:]):
        name = _NAMED.match(line)
        key = name.group()[:-1] if name else str(position)
        yield key, None if line == "-" else json.loads(line[name.end() if name else 0 :])


def source_forms(text: str) -> dict[str, str]:
    """Returns the form of the offset of each source in an entry of the offsets log. `text` is a complete entry."""
    return {name: form_of(value) for name, value in source_offsets(text) if value is not None}


def form_of(offset: object) -> str:
    """Returns `FILES`, `KAFKA` or `DELTA`, empty if unknown. The form of an offset shows the kind of the source."""
    if not isinstance(offset, dict):
        return ""
    if isinstance(offset.get("logOffset"), int):
        return FILES
    if isinstance(offset.get("reservoirVersion"), int):
        return DELTA
    topics = list(offset.values())
    return KAFKA if topics and all(isinstance(topic, dict) for topic in topics) else ""


def is_complete_start(text: str) -> bool:
    """Whether the file with the first offsets of a Kafka source is complete: a NUL, the version, a line of JSON
    (KafkaSourceInitialOffsetWriter).
    """
    return text.startswith("\0") and is_complete(text[1:], 1)


def logged_files(text: str, number: int) -> list[str]:
    """Returns the URIs of the files that entry `number` of a source's log adds. `text` is complete."""
    entries = [json.loads(line) for line in text.split("\n")[1:]]
    # A compact entry also has the files of earlier batches.
    return [entry["path"] for entry in entries if entry.get("batchId", number) == number and "path" in entry]


def read_until(log: BatchLog, last: int) -> dict[str, int] | None:
    """Returns the URIs of the files that a source has read up to entry `last` of its log, and the time of the last
    change of each (ms since 1970). `log` contains the texts of `from_compact`. None if an entry is missing or torn.
    """
    first = min((number for number in log.texts if log.is_compact(number)), default=0)
    if log.torn() or any(number not in log.texts for number in range(first, last + 1)):
        return None
    lines = ((number, line) for number, text in log.texts.items() for line in text.split("\n")[1:])
    entries = ((number, json.loads(line)) for number, line in lines)
    return {
        entry["path"]: entry.get("timestamp", 0)
        for number, entry in entries
        if entry.get("batchId", number) <= last and "path" in entry
    }


def watermark_of(text: str) -> int | None:
    """Returns the watermark with which a batch ran (ms since 1970), None if there was none. `text` is a complete entry
    of the offsets log.
    """
    line = text.split("\n")[1]
    found = json.loads(line) if line else None
    # Spark writes 0 while there is no watermark.
    return (found.get("batchWatermarkMs") or None) if isinstance(found, dict) else None
