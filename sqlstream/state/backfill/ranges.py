"""The history of a source: what its stream has not read and will not read, without what was backfilled."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlstream.state.backfill.record import HistoryFile, SourceHistory
from sqlstream.state.output_files import StoredFile
from sqlstream.state.progress.source_files import FileChoice, local_path, unread_files

Offsets = Mapping[str, Mapping[str, int]]
"""Offsets of Kafka by topic and partition."""

Span = tuple[int, int]
"""Offsets from the first one (inclusive) to the second one (exclusive)."""

_KEPT = "/:@!$&'()*+,;=~-._"
"""The characters that are not encoded in the URIs of files."""


@dataclass(frozen=True)
class TimeRange:
    """Times from `since` (inclusive) to `until` (exclusive), in ms since 1970; None for no limit."""

    since: int | None = None
    until: int | None = None

    def has(self, time: int) -> bool:
        """Returns whether a time is in the range."""
        return (self.since is None or time >= self.since) and (self.until is None or time < self.until)


def unread_history(
    found: Sequence[StoredFile],
    read: Mapping[str, int],
    choice: FileChoice,
    times: TimeRange,
    done: Iterable[SourceHistory],
) -> tuple[HistoryFile, ...]:
    """Returns the files of a source that its stream will never read, the oldest first. `found` are all its files, named
    by their absolute paths, and `read` those that the stream has read.
    """
    coming = {file.name for file in unread_files(found, read, choice)}
    known = {local_path(uri) or uri for uri in read} | {
        local_path(file.uri) or file.uri for history in done for file in history.files
    }
    left = (file for file in found if file.name not in coming and file.name not in known and times.has(file.modified))
    return tuple(HistoryFile(file_uri(file.name), file.modified) for file in sorted(left, key=_age))


def read_again(done: Iterable[SourceHistory], read: Mapping[str, int], choice: FileChoice) -> list[str]:
    """Returns the paths of the files that backfills have read and that the stream of a source would read, too. `read`
    are the files that it has read.
    """
    files = [
        StoredFile(local_path(file.uri) or file.uri, 0, file.modified) for history in done for file in history.files
    ]
    return [file.name for file in unread_files(files, read, choice)]


def _age(file: StoredFile) -> tuple[int, str]:
    return file.modified, file.name


def file_uri(path: str) -> str:
    """Returns the URI of a local file as Spark's logs have it."""
    return f"file://{quote(path, safe=_KEPT)}"


def unread_records(
    first: Offsets, start: Offsets, end: Offsets, done: Iterable[SourceHistory]
) -> list[tuple[Offsets, Offsets]]:
    """Returns the offsets below `first`, where the stream began, that are left between `start` and `end`: pairs of
    start and end offsets, each of which one batch can read. `start` and `end` have all partitions of `first`.
    """
    begun = list(done)
    spans = {
        (topic, partition): _left(
            start[topic][partition], min(end[topic][partition], stop), _spans(begun, topic, partition)
        )
        for topic, partitions in first.items()
        for partition, stop in partitions.items()
    }
    rounds = max((len(found) for found in spans.values()), default=0)
    return [_round(spans, first, number) for number in range(rounds)]


def _spans(done: Sequence[SourceHistory], topic: str, partition: str) -> list[Span]:
    return sorted(
        (history.start[topic][partition], history.end[topic][partition])
        for history in done
        if partition in history.end.get(topic, {})
    )


def _left(start: int, end: int, done: Sequence[Span]) -> list[Span]:
    """Returns the parts of a span that are not in `done`, whose spans do not overlap."""
    found = []
    for begun, ended in done:
        if begun > start:
            found.append((start, min(begun, end)))
        start = max(start, ended)
    found.append((start, end))
    return [span for span in found if span[0] < span[1]]


def _round(spans: Mapping[tuple[str, str], Sequence[Span]], first: Offsets, number: int) -> tuple[Offsets, Offsets]:
    """Returns the span `number` of each partition. A partition without one reads nothing."""

    def side(at: int) -> Offsets:
        return {
            topic: {
                partition: spans[topic, partition][number][at] if number < len(spans[topic, partition]) else stop
                for partition, stop in partitions.items()
            }
            for topic, partitions in first.items()
        }

    return side(0), side(1)


def count_records(history: SourceHistory) -> int:
    """Returns the number of offsets of Kafka in a backfill. Some may have no record, such as those of transactions."""
    return sum(
        end - history.start[topic][partition]
        for topic, partitions in history.end.items()
        for partition, end in partitions.items()
    )


def in_batches(histories: Mapping[str, Sequence[SourceHistory]]) -> Iterator[dict[str, SourceHistory]]:
    """Yields the history that each batch reads of each source."""
    for number in range(max(map(len, histories.values()), default=0)):
        yield {key: found[number] for key, found in histories.items() if number < len(found)}
