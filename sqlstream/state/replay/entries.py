"""A batch in the logs of a checkpoint: which files it has read, and the logs of a checkpoint with only that batch."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlstream.state.batch_logs import BatchLog, form_of, source_offsets
from sqlstream.state.ledger import SourceUse
from sqlstream.state.progress.positions import assigned


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
    found = {0}
    for version in range(1, max((number for number, _ in files), default=0) + 1):
        if version in whole or (version in changes and version - 1 in found):
            found.add(version)
    return found
