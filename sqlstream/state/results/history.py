"""The versions of a query, as plain values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.state.ledger import HistoryEntry
from sqlstream.state.versions.versions import Switch


@dataclass(frozen=True)
class VersionHistory:
    """A stored version: its committed batches, its output, and its changes. Of an early ledger only `written_at` and
    `reason` are known; without a readable ledger, `reason` says why. `part` is `current`, `parallel`, `previous` or
    empty.
    """

    version: int
    batches: int
    output: str | None
    written_at: str | None
    reason: str | None
    entries: tuple[HistoryEntry, ...] = ()
    part: str = ""


@dataclass(frozen=True)
class QueryHistory:
    """The stored versions of a query, the oldest first, and its last switches to another version, newest last."""

    model: str
    versions: tuple[VersionHistory, ...]
    switches: tuple[Switch, ...] = ()
