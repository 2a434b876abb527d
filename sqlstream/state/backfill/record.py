"""The record of the backfills of one version of a query: backfills.json beside its checkpoint.

An entry is written before the backfill begins, with the number of its batch. It counts as done when the checkpoint has
committed that batch, so one atomic step ends both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from pydantic import TypeAdapter, ValidationError

from sqlstream.state.layout import version_root

RECORD_NAME = "backfills.json"
RECORD_VERSION = 1
"""The format of the file. A later one is refused."""


class RecordUnreadableError(ValueError):
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
class Backfill:
    """One batch of history. `sources` are by their names or positions in the checkpoint. `since` and `until` are the
    requested range (UTC, ISO 8601), None for no limit.
    """

    batch: int
    begun_at: str
    since: str | None
    until: str | None
    sources: Mapping[str, SourceHistory]


@dataclass(frozen=True)
class BackfillRecord:
    """All backfills of a version, in order."""

    entries: tuple[Backfill, ...] = field(default=())

    def unfinished(self, last_commit: int) -> Backfill | None:
        """Returns the backfill that was begun and not committed, None without one."""
        last = self.entries[-1] if self.entries else None
        return last if last is not None and last.batch > last_commit else None

    def histories(self, key: str) -> Iterator[SourceHistory]:
        """Yields what was backfilled of a source."""
        yield from (entry.sources[key] for entry in self.entries if key in entry.sources)

    def to_json(self) -> str:
        """Returns the text of backfills.json."""
        return json.dumps({"version": RECORD_VERSION, **asdict(self)}, indent=2) + "\n"


_RECORD = TypeAdapter(BackfillRecord)


def record_path(root: str, version: int) -> str:
    """Returns the path of the record of a version of the query under `root`."""
    return f"{version_root(root, version)}/{RECORD_NAME}"


def readable_record(text: str | None) -> BackfillRecord:
    """Returns the record in `text`, an empty one if it cannot be read: runs report that."""
    try:
        return read_record(text)
    except RecordUnreadableError:
        return BackfillRecord()


def read_record(text: str | None) -> BackfillRecord:
    """Returns the record in `text`, an empty one for None. Raises: RecordUnreadableError."""
    if text is None:
        return BackfillRecord()
    try:
        data = json.loads(text)
        if not isinstance(data, dict) or data.pop("version", None) != RECORD_VERSION:
            raise RecordUnreadableError("it has no version that this sqlstream can read")
        return _RECORD.validate_python(data)
    except ValidationError as error:
        raise RecordUnreadableError(f"it is no record of backfills: {error.errors()[0]['msg']}") from error
    except ValueError as error:
        raise RecordUnreadableError(f"it cannot be read: {error}") from error
