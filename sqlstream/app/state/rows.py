"""`sqlstream state show` and `sqlstream state size`: look into the state of a query. Write nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.stored.stored_query import StoredQuery, open_query
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.location import Place
from sqlstream.spark.jvm.errors import error_finding
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.state_rows import partition_sizes, readable_checkpoint, show_store, stores_of
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import read_offsets
from sqlstream.state.repartitions import batch_partitions
from sqlstream.state.stored_state import ShownState, StateSize, StateStore, StoreSize

_FILE = re.compile(r"(?P<operator>\d+)/(?P<partition>\d+)/")


def show_state(
    request: ProjectRequest, name: str, *, version: int | None = None, key: str | None = None, limit: int
) -> ShownState:
    """Returns the first rows of the state of the query of `name`. `key` is a condition in SQL on the keys' fields.

    Raises: FindingsError, also if Spark cannot read the state; UsageError if `name` is not a terminal model, or the
    query has no state.
    """
    with _stores(request, name, version) as (query, checkpoint, stores):
        session = query.storages.session
        rows = tuple(show_store(session, checkpoint, store, key, limit) for store in stores)
        return ShownState(name, query.state.version, rows)


def state_size(request: ProjectRequest, name: str, *, version: int | None = None) -> StateSize:
    """Returns the sizes of the state of the query of `name`, by operator and partition. Raises: as `show_state`."""
    with _stores(request, name, version) as (query, checkpoint, stores):
        session, disk = query.storages.session, _bytes_on_disk(query)
        sizes = (
            StoreSize(store, partition_sizes(session, checkpoint, store), disk.get(store.operator, {}))
            for store in stores
        )
        return StateSize(name, query.state.version, tuple(sizes))


@contextmanager
def _stores(
    request: ProjectRequest, name: str, version: int | None
) -> Iterator[tuple[StoredQuery, str, tuple[StateStore, ...]]]:
    """Yields a query, its checkpoint for Spark, and its state stores.

    Raises: FindingsError for Spark's errors in the body; UsageError.
    """
    with open_query(load_for_reading(request), request, name, version) as query:
        if query.state.last_commit < 0:
            raise UsageError(f"`{name}` has no state yet: no batch is committed")
        if not query.storages.of(query.checkpoint)[0].names(f"{query.checkpoint}/state"):
            raise UsageError(f"`{name}` keeps no state")
        request.notify("Starting Spark to read the state")
        try:
            with readable_checkpoint(query.checkpoint) as checkpoint:
                yield query, checkpoint, stores_of(query.storages.session, checkpoint)
        except SPARK_ERRORS as error:
            raise FindingsError([_unreadable(query, error, request)]) from error


def _unreadable(query: StoredQuery, error: BaseException, request: ProjectRequest) -> Finding:
    return error_finding(
        error,
        code="storage-unusable",
        what=f"Spark cannot read the state of `{query.model.name}`",
        place=Place(query.model.file.location),
        secrets=Secrets(request.env),
    )


def _bytes_on_disk(query: StoredQuery) -> dict[int, dict[int, int]]:
    """Returns the bytes of the files of each operator, by partition. Files of partitions that the state no longer has
    remain after a repartition, and do not count.
    """
    storage, checkpoint = query.storages.of(query.checkpoint)
    count = batch_partitions(read_offsets(storage, checkpoint), query.state.last_commit)
    found: dict[int, dict[int, int]] = {}
    for file in storage.files(f"{checkpoint}/state"):
        match = _FILE.match(file.name)
        if match is not None and (count is None or int(match["partition"]) < count):
            sizes = found.setdefault(int(match["operator"]), {})
            partition = int(match["partition"])
            sizes[partition] = sizes.get(partition, 0) + file.size
    return found
