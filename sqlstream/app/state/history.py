"""`sqlstream state history`: shows the versions of a query and the changes of each."""

from __future__ import annotations

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.stored_query import open_query
from sqlstream.state.checkpoints import read_version, read_versions, read_versions_file
from sqlstream.state.results.history import QueryHistory, VersionHistory


def query_history(request: ProjectRequest, name: str) -> QueryHistory:
    """Returns the stored versions of the query of the terminal model `name`, the newest last. Writes nothing.

    Raises: FindingsError for errors of the storage; UsageError if `name` is not a terminal model.
    """
    with open_query(load_for_reading(request), request, name) as query:
        parts = read_versions_file(query.storages.of, query.root)
        found = []
        for version in read_versions(query.storages.of, query.root):
            state = read_version(query.storages.of, query.root, version)
            ledger = state.ledger
            found.append(
                VersionHistory(
                    version,
                    state.last_commit + 1,
                    ledger.output if ledger else None,
                    ledger.written_at if ledger else None,
                    ledger.reason if ledger else state.unreadable,
                    ledger.history if ledger else (),
                    parts.part_of(version),
                )
            )
        return QueryHistory(name, tuple(found))
