"""The history of a query's sources, which of it a backfill can write, and the log of the batches that commands have
added to the stream, backfills and releases of quarantined rows: backfills.json beside the checkpoint of a version.

An entry is written before its batch begins, with the number of its batch. It counts as done when the checkpoint has
committed that batch, so one atomic step ends both.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.wording import quoted
from sqlstream.state.layout import version_root
from sqlstream.state.output_files import StoredFile
from sqlstream.state.sources.positions import DatedFilesOf, read_position
from sqlstream.state.sources.source_files import FileChoice, file_choice, local_path, unread_files

LOG_NAME = "backfills.json"
WITHOUT_RELEASES, RECORD_VERSION = 1, 2
"""The formats of the file: sqlstream before releases reads only the first. A later one is refused."""


class UnreadableBackfillsError(ValueError):
    """The backfills.json is damaged, or from a later sqlstream. The message is one line."""


@dataclass(frozen=True)
class HistoryFile:
    """A file of history: its encoded URI, and when it was changed (ms since 1970)."""

    uri: str
    modified: int


@dataclass(frozen=True)
class SourceHistory:
    """The history of one source in a backfill. `form` is that of its offsets: files have `files`, the others the
    offsets `start` (None: before the first) and `end`.
    """

    table: str
    form: str
    files: tuple[HistoryFile, ...] = ()
    start: Any = None
    end: Any = None


@dataclass(frozen=True)
class Release:
    """Rows of a quarantine that one batch writes to the sinks: those that meet `where` (None: all), with the SQL in
    `changes` as the values of columns. They are in `released_path`.
    """

    rows: int
    where: str | None = None
    changes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Backfill:
    """One batch of history, or of a `release`. `sources` are by their names or positions in the checkpoint. `since` and
    `until` are the requested range (UTC, ISO 8601), None for no limit.
    """

    batch: int
    begun_at: str
    since: str | None
    until: str | None
    sources: Mapping[str, SourceHistory]
    release: Release | None = None


@dataclass(frozen=True)
class BackfillLog:
    """All backfills of a version, in order."""

    entries: tuple[Backfill, ...] = field(default=())

    def unfinished(self, last_commit: int) -> Backfill | None:
        """Returns the backfill that was begun and not committed, None without one."""
        # Only the last one can be open: until it is committed, runs refuse the query, and `backfill` completes it.
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.batch > last_commit else None

    def histories(self, key: str) -> Iterator[SourceHistory]:
        """Yields what was backfilled of a source."""
        yield from (entry.sources[key] for entry in self.entries if key in entry.sources)

    def releases(self, last: int) -> dict[int, Release]:
        """Returns the releases up to the batch `last`, by the numbers of their batches."""
        found = ((entry.batch, entry.release) for entry in self.entries if entry.batch <= last)
        return {batch: release for batch, release in found if release is not None}

    def to_json(self) -> str:
        """Returns the text of backfills.json."""
        has_releases = any(entry.release is not None for entry in self.entries)
        version = RECORD_VERSION if has_releases else WITHOUT_RELEASES
        return json.dumps({"version": version, **asdict(self)}, indent=2) + "\n"


_LOG = TypeAdapter(BackfillLog)


def backfills_path(root: str, version: int) -> str:
    """Returns the path of the log of a version of the query under `root`."""
    return f"{version_root(root, version)}/{LOG_NAME}"


def released_path(root: str, version: int, batch: int) -> str:
    """Returns the folder of Parquet files with the rows of a release, for a version of the query under `root`."""
    return f"{version_root(root, version)}/released/{batch}"


def readable_backfills(text: str | None) -> BackfillLog:
    """Returns the log in `text`, an empty one if it cannot be read: runs report that."""
    try:
        return read_backfills(text)
    except UnreadableBackfillsError:
        return BackfillLog()


def read_backfills(text: str | None) -> BackfillLog:
    """Returns the log in `text`, an empty one for None. Raises: UnreadableBackfillsError."""
    if text is None:
        return BackfillLog()
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("version", None) not in (WITHOUT_RELEASES, RECORD_VERSION):
            raise UnreadableBackfillsError("it has no version that this sqlstream can read")
        return _LOG.validate_python(data)
    except ValidationError as error:
        raise UnreadableBackfillsError(f"it is no record of backfills: {error.errors()[0]['msg']}") from error
    except ValueError as error:
        raise UnreadableBackfillsError(f"it cannot be read: {error}") from error


Offsets = Mapping[str, Mapping[str, int]]
"""Offsets of Kafka by topic and partition."""

Span = tuple[int, int]
"""Offsets from the first one (inclusive) to the second one (exclusive)."""

_KEPT = "/:@!$&'()*+,;=~-._"
"""The characters that java.net.URI, and so Spark's logs, leave as they are in the path of a file."""


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
    # The stream still reads these in its next batches, so a backfill would write their rows twice.
    coming = {file.name for file in unread_files(found, read, choice)}
    known = {local_path(uri) or uri for uri in read} | {
        local_path(file.uri) or file.uri for history in done for file in history.files
    }
    left = (file for file in found if file.name not in coming and file.name not in known and times.has(file.modified))
    return tuple(
        HistoryFile(file_uri(file.name), file.modified)
        for file in sorted(left, key=lambda file: (file.modified, file.name))
    )


def read_again(done: Iterable[SourceHistory], read: Mapping[str, int], choice: FileChoice) -> list[str]:
    """Returns the paths of the files that backfills have read and that the stream of a source would read, too. `read`
    are the files that it has read.
    """
    files = [
        StoredFile(local_path(file.uri) or file.uri, 0, file.modified) for history in done for file in history.files
    ]
    return [file.name for file in unread_files(files, read, choice)]


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
            # The stream has read from `stop` on.
            start[topic][partition],
            min(end[topic][partition], stop),
            _spans(begun, topic, partition),
        )
        for topic, partitions in first.items()
        for partition, stop in partitions.items()
    }
    # A batch reads one span of each partition, so the gaps between earlier backfills take a batch each.
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


CODE, UNFINISHED, AGAIN = "cannot-backfill", "unfinished-backfill", "backfilled-files"


def cannot_backfill(model: str, why: str, fix: str, location: Location, *, recomputes: bool = False) -> Finding:
    """Returns the finding that a query cannot be backfilled, or that a range of it cannot be recomputed."""
    what = "recomputed" if recomputes else "backfilled"
    return Finding(CODE, f"{quoted(model)} cannot be {what}", why, fix, location)


def beside(model: str) -> str:
    """Returns how a new version reads all history instead."""
    return (
        "read everything in a new version in parallel with the current one: "
        f"`sqlstream run --select {model} --parallel {model} --full-refresh`, then `sqlstream promote {model}`; "
        "let a source of Kafka or Delta Lake start earlier for it"
    )


def unfinished(model: str, begun: Backfill, location: Location) -> Finding:
    """Returns the finding that a backfill or a release was interrupted."""
    what, command = ("a backfill", "backfill") if begun.release is None else ("a release", "quarantine release")
    return Finding(
        UNFINISHED,
        f"{what} of {quoted(model)} was interrupted in batch {begun.batch}",
        "the sink may have the rows of that batch already, so the stream cannot use its number for new rows",
        f"complete it: `sqlstream {command} {model}`; it writes each row once",
        location,
    )


def written_by_backfill(model: str, table: str, files: Sequence[str], location: Location) -> Finding:
    """Returns the finding that a stream would read files again that a backfill has written."""
    return Finding(
        AGAIN,
        f"{quoted(model)} would read {plural(len(files), 'file')} again that a backfill has written to its sink",
        f"the options of its source {quoted(table)}, such as `maxFileAge`, now include them, for example {files[0]}",
        f"undo the change of the options; or read everything in a new version: "
        f"`sqlstream run --full-refresh --select {model}`",
        location,
    )


def unreadable_backfills(model: str, path: str, problem: str, location: Location) -> Finding:
    """Returns the finding that the record of backfills cannot be read."""
    return Finding(
        "ledger-unreadable",
        f"the record of the backfills of {quoted(model)} cannot be read",
        f"{path}: {problem}; without it, history or released rows could be written twice",
        f"restore the file from a backup; or start over: `sqlstream run --full-refresh --select {model}`",
        location,
    )


def check_backfilled(
    compiled: CompiledProject,
    model: CompiledModel,
    version_at: tuple[str, int],
    log: BackfillLog,
    files: DatedFilesOf,
) -> None:
    """Raises: FindingsError if a source now includes files of `log`, because its options have changed. `version_at`
    are the root of the query and the version that resumes.
    """
    if not log.entries:
        return
    tables = {table.full_name: table for table in compiled.tables_of(model.unique_id)}
    findings = []
    for source in read_position(files, *version_at).sources:
        table = tables.get(source.use.table) if source.use is not None else None
        if table is None or source.read is None:
            continue
        choice = file_choice(table.options)
        again = [] if choice is None else read_again(log.histories(source.key), source.read, choice)
        if again:
            findings.append(written_by_backfill(model.name, table.full_name, again, model.file.location))
    if findings:
        raise FindingsError(findings)
