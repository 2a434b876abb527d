"""`sqlstream state history`: shows the versions of a query and the changes of each."""

from __future__ import annotations

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.stored.stored_query import open_query
from sqlstream.app.versions.publications import names_of
from sqlstream.app.versions.stored_versions import QueryHistory, stored_versions
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.query_versions import Versions


def query_history(request: ProjectRequest, name: str) -> QueryHistory:
    """Returns the stored versions of the query of the terminal model `name`, the newest last. Writes nothing.

    Raises: FindingsError for errors of the storage; UsageError if `name` is not a terminal model.
    """
    with open_query(load_for_reading(request), request, name) as query:
        names = names_of(query, request)

        def place(parts: Versions, state: CheckpointState) -> str | None:
            has_output = state.ledger is not None and state.ledger.output is not None
            return next(iter(names.places(parts, state)), None) if has_output else None

        return stored_versions(query.storages.of, query.root, name, place)
