"""The stored versions of a query with their changes, read without Spark where the storage is local; and what a switch
has done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlstream.state.checkpoints import CheckpointState, FilesOf, read_version, read_versions, read_versions_file
from sqlstream.state.ledger import HistoryEntry
from sqlstream.state.query_versions import Switch, Versions

OutputOf = Callable[[Versions, CheckpointState], str | None]
"""Returns where readers find the output of a version, None if it has none."""


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


@dataclass(frozen=True)
class Switched:
    """The current `version` of a query, and `before`, the one that was current. `outputs` are the paths or tables to
    which it writes. `holder` is the process that still runs the version before. `behind` says in words what the current
    version has not read yet, and `problems` why plain names cannot show it.
    """

    model: str
    version: int
    before: int
    outputs: tuple[str, ...] = ()
    holder: str | None = None
    behind: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def written_output(_: Versions, state: CheckpointState) -> str | None:
    """Returns where the query of a version writes. See `OutputOf`."""
    return state.ledger.output if state.ledger else None


def stored_versions(files_of: FilesOf, root: str, name: str, output_of: OutputOf = written_output) -> QueryHistory:
    """Returns the versions under `root` of the query of the model `name`, the newest last. Raises: OSError."""
    parts = read_versions_file(files_of, root)
    found = []
    for version in read_versions(files_of, root):
        state = read_version(files_of, root, version)
        ledger = state.ledger
        found.append(
            VersionHistory(
                version,
                state.last_commit + 1,
                output_of(parts, state),
                ledger.written_at if ledger else None,
                ledger.reason if ledger else state.unreadable,
                ledger.history if ledger else (),
                parts.part_of(version),
            )
        )
    return QueryHistory(name, tuple(found), parts.history)
