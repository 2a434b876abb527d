"""A batch in the logs of a checkpoint: which files it has read, the logs of a checkpoint with only that batch, and why
a batch cannot be replayed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import quoted, quoted_list
from sqlstream.state.batch_logs import BatchLog, form_of, source_offsets
from sqlstream.state.ledger import SourceUse
from sqlstream.state.sources.positions import assigned

BATCH, SOURCE, CHANGED, TEST = "replay-batch", "replay-source", "replay-changed", "replay-test"

SHOWN_FILES = 3
"""The number of missing files that a finding names."""


@dataclass(frozen=True)
class BatchSource:
    """What a batch has read of one source. `key` is its name or position in the checkpoint, `start` and `end` are
    Spark's offsets: None before the first one.
    """

    key: str
    use: SourceUse
    start: Any
    end: Any

    @property
    def form(self) -> str:
        """The form of the offsets, empty if unknown."""
        return form_of(self.end)

    @property
    def log_range(self) -> tuple[int, int]:
        """The first and the last entry that the batch has read in the log of a source of files."""
        first = 0 if self.start is None else self.start["logOffset"] + 1
        return first, self.end["logOffset"]


@dataclass(frozen=True)
class BatchEntries:
    """The entries of batch `number` in the logs of a checkpoint: `planned` has its offsets, `before` those of the batch
    before, which `committed` has ended. These two are None for batch 0.
    """

    number: int
    planned: str
    before: str | None
    committed: str | None

    def sources(self, uses: Sequence[SourceUse]) -> tuple[BatchSource, ...]:
        """Returns what the batch has read of each source of the query, in the order of its readers."""
        before = dict(source_offsets(self.before)) if self.before is not None else {}
        found = assigned(dict(source_offsets(self.planned)), uses)
        return tuple(BatchSource(key, use, before.get(key), end) for key, use, end in found if use is not None)

    def only(self, sources: Sequence[BatchSource]) -> BatchEntries:
        """Returns the same batch of a query that reads only `sources`."""
        before = None if self.before is None else entry_of(self.before, [(each.key, each.start) for each in sources])
        planned = entry_of(self.planned, [(each.key, each.end) for each in sources])
        return BatchEntries(self.number, planned, before, self.committed)


def entry_of(text: str, offsets: Iterable[tuple[str, Any]]) -> str:
    """Returns the entry `text` of the offsets log with other sources, each with its key and its offset. Without
    a key, a source is known by its position.
    """
    version, batch, *_ = text.split("\n")
    lines = (f"{'' if key.isdigit() else f'{key}:'}{offset_text(offset)}" for key, offset in offsets)
    return "\n".join([version, batch, *lines])


def offset_text(offset: Any) -> str:
    """Returns an offset as the log has it."""
    return "-" if offset is None else json.dumps(offset, separators=(",", ":"))


def planned_at(text: str) -> int | None:
    """Returns when a batch was planned, which is its current_timestamp() (ms since 1970). None if the entry does not
    say it.
    """
    line = text.split("\n")[1]
    found = json.loads(line) if line else None
    return (found.get("batchTimestampMs") or None) if isinstance(found, dict) else None


def files_between(log: BatchLog, first: int, last: int) -> list[str] | None:
    """Returns the URIs of the files in the entries `first` to `last` of a source's log, in order. `log` contains the
    texts of `from_compact`. None if an entry is missing or torn.
    """
    # a compact entry repeats the entries before it
    start = min((number for number in log.texts if log.is_compact(number)), default=0)
    if log.torn() or any(number not in log.texts for number in range(max(first, start), last + 1)):
        return None
    entries = ((number, json.loads(line)) for number, text in log.texts.items() for line in text.split("\n")[1:])
    return [
        entry["path"] for number, entry in entries if first <= entry.get("batchId", number) <= last and "path" in entry
    ]


def state_versions(files: Mapping[str, Iterable[tuple[int, bool]]]) -> set[int] | None:
    """Returns the versions of the state that every store can load, None without a store. `files` has the files of each
    store: their versions, and whether a file has the whole state or only its changes.
    """
    loadable: set[int] | None = None
    for versions in files.values():
        found = _loadable(list(versions))
        loadable = found if loadable is None else loadable & found
    return loadable


def _loadable(files: Sequence[tuple[int, bool]]) -> set[int]:
    whole, changes = ({number for number, is_whole in files if is_whole is kind} for kind in (True, False))
    found = {0}  # before the first batch, the state is empty
    for version in range(1, max((number for number, _ in files), default=0) + 1):
        if version in whole or (version in changes and version - 1 in found):
            found.add(version)
    return found


def unknown_batch(model: str, batch: int, known: Sequence[int], location: Location) -> Finding:
    """Returns the finding that the checkpoint does not have a batch. `known` are those that it has."""
    if not known:
        why, fix = "the query has not started a batch yet", f"run it first: `sqlstream run --select {model}`"
    elif batch in known:
        why, fix = "its entry in the checkpoint is incomplete", "replay another batch"
    elif batch > known[-1]:
        why, fix = f"the last batch is {known[-1]}", f"give a batch from {known[0]} to {known[-1]}"
    else:
        why = f"Spark has removed the offsets of the batches before {known[0]}"
        fix = f"give a batch from {known[0]} to {known[-1]}; to keep more, set spark.sql.streaming.minBatchesToRetain"
    return Finding(BATCH, f"{quoted(model)} has no batch {batch} to replay", why, fix, location)


def no_batches(model: str, why: str, location: Location) -> Finding:
    """Returns the finding that a query has no batches that could be replayed."""
    fix = f"`sqlstream show --select {model}` shows its rows for the current data"
    return Finding(BATCH, f"{quoted(model)} has no batches to replay", why, fix, location)


def unknown_offsets(model: str, table: str, location: Location) -> Finding:
    """Returns the finding that a source cannot read the data of a past batch again."""
    return Finding(
        SOURCE,
        f"{quoted(model)} cannot be replayed, because the source {quoted(table)} cannot read a past batch again",
        "only files, Kafka and Delta tables return the same rows for the same offsets",
        "write its rows to files or Kafka first, and replay the queries that read them",
        location,
    )


def unknown_files(model: str, table: str, batch: int, location: Location) -> Finding:
    """Returns the finding that the log of a source of files is incomplete."""
    return Finding(
        SOURCE,
        f"the files that batch {batch} of {quoted(model)} has read of {quoted(table)} are unknown",
        "an entry in the log of the source is missing or incomplete",
        f"`sqlstream state repair {model}` finds damage of the checkpoint; or replay a later batch",
        location,
    )


def gone_files(what: str, files: Sequence[str], otherwise: str, location: Location) -> Finding:
    """Returns the finding that `what` has read files that no longer exist. `otherwise` is what can be done if they
    cannot be restored.
    """
    more = len(files) - SHOWN_FILES
    named = ", ".join(files[:SHOWN_FILES]) + (f" and {more:,} more" if more > 0 else "")
    return Finding(
        "source-file-gone",
        f"{what} has read files that no longer exist",
        f"missing: {named}",
        f"restore them at the same path, or {otherwise}",
        location,
    )


def changed_project(model: str, changes: Sequence[str], location: Location) -> Finding:
    """Returns the finding that the project differs too much from the query that ran."""
    return Finding(
        CHANGED,
        f"{quoted(model)} cannot be replayed, because the project has changed since it ran",
        "; ".join(changes),
        "check out the project as it ran, for example with `git worktree`, and replay the batch there",
        location,
    )


def no_test(model: str, why: str, fix: str, location: Location) -> Finding:
    """Returns the finding that a batch cannot become a unit test."""
    return Finding(TEST, f"the batch of {quoted(model)} cannot be written as a unit test", why, fix, location)


def sql_note(names: Sequence[str], *, has_ended: bool) -> str:
    """Returns the note about models whose SQL is not that of the ledger: a batch that has ended is replayed with the
    SQL that ran, another one with that of the project.
    """
    if has_ended:
        return f"the SQL of {quoted_list(names)} has changed since; this is what the SQL that ran returns"
    return f"the batch has not ended; this is what it returns with the present SQL of {quoted_list(names)}"


def added_batch(model: str, batch: int, location: Location, *, is_release: bool) -> Finding:
    """Returns the finding that a batch is one of a backfill or of a release."""
    command = "quarantine release" if is_release else "backfill"
    return Finding(
        BATCH,
        f"batch {batch} of {quoted(model)} cannot be replayed, because `sqlstream {command}` wrote it",
        "what it has read is recorded beside the checkpoint, not in the logs of the stream",
        "replay another batch",
        location,
    )
