"""The stored versions of a query with their changes, read without Spark where the storage is local."""

from __future__ import annotations

from collections.abc import Callable

from sqlstream.state.checkpoints import FilesOf, read_version, read_versions, read_versions_file
from sqlstream.state.plan import CheckpointState
from sqlstream.state.results.history import QueryHistory, VersionHistory
from sqlstream.state.versions.versions import Versions

Place = Callable[[Versions, CheckpointState], str | None]
"""Returns where readers find the output of a version, None if it has none."""


def written_place(_: Versions, state: CheckpointState) -> str | None:
    """Returns where the query of a version writes. See `Place`."""
    return state.ledger.output if state.ledger else None


def stored_versions(files_of: FilesOf, root: str, name: str, place: Place = written_place) -> QueryHistory:
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
                place(parts, state),
                ledger.written_at if ledger else None,
                ledger.reason if ledger else state.unreadable,
                ledger.history if ledger else (),
                parts.part_of(version),
            )
        )
    return QueryHistory(name, tuple(found), parts.history)
