"""`sqlstream state repartition`: changes the number of partitions of a query's state."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.partitions import StoredState
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.errors import FindingsError, UsageError
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.locks import HeldLock
from sqlstream.spark.storage.query_locks import query_lock
from sqlstream.state.checkpoints import read_version
from sqlstream.state.repartition.refusals import older_spark
from sqlstream.state.stored_state import Repartitioned


def repartition_query(
    request: ProjectRequest, name: str, partitions: int, *, version: int | None = None
) -> Repartitioned:
    """Changes the state of the query of `name` to `partitions` partitions, by default in the current version.

    Raises: FindingsError, also if the query runs or Spark cannot repartition it, without any change; UsageError if
    `name` is not a terminal model, or the query has no state.
    """
    with open_query(load(request), request, name, version) as query:
        place = query.model.file.location
        if query.state.last_commit < 0:
            raise UsageError(f"`{name}` has no state yet: no batch is committed")
        if not query.storages.of(query.checkpoint)[0].names(f"{query.checkpoint}/state"):
            raise UsageError(f"`{name}` keeps no state")
        older = older_spark(name, request.spark_version(), place)
        if older is not None:
            raise FindingsError([older])
        secrets = Secrets(request.env)
        with query_lock(query.storage, query.lock_root, name, place, secrets) as lock:
            locked = replace(query, state=read_version(query.storages.of, query.root, query.state.version))
            request.notify("Starting Spark to repartition the state")
            return _stored_state(locked, request, lock).repartition(partitions)


def _stored_state(query: StoredQuery, request: ProjectRequest, lock: HeldLock) -> StoredState:
    return StoredState(
        query.model.name,
        query.model.file.location,
        query.storages,
        query.storages.session,
        Secrets(request.env),
        query.root,
        query.state,
        tuple(output.path for output in query.outputs if not output.is_replaced),
        lock.confirm,
    )
