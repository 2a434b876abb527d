"""`sqlstream replay`: runs a past batch of a query again, and shows its rows on their way through the query."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.planning.checking import spark_for
from sqlstream.app.replaying.parts import static_names
from sqlstream.app.replaying.query import PastQuery
from sqlstream.app.replaying.replay import QueryReplay
from sqlstream.app.replaying.unit_test import TestOfBatch, collect_test
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.ready import storage_location
from sqlstream.app.running.stored_query import StoredQuery, open_query
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.wording import quoted_list
from sqlstream.spark.replaying.copies import StoredCheckpoint
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import Storage, storage_for, storage_problems
from sqlstream.state.backfill.record import readable_record, record_path
from sqlstream.state.batch_logs import watermark_of
from sqlstream.state.ledger import Ledger
from sqlstream.state.plan import CheckpointState
from sqlstream.state.replay.entries import BatchEntries, planned_at
from sqlstream.state.replay.findings import backfill_batch, no_batches, sql_note
from sqlstream.state.results.replay import Replayed, ReplayedNode
from sqlstream.times import utc_text

SHOWN_ROWS = 20
"""The default number of rows to show of each source, view and model."""


@dataclass(frozen=True)
class ReplayRequest:
    """A batch to replay, by default the last one of the current version. `test` is the name of the unit test to write:
    None for no test, empty for a name made of the batch.
    """

    project: ProjectRequest
    model: str
    batch: int | None = None
    version: int | None = None
    limit: int = SHOWN_ROWS
    test: str | None = None


def replay_batch(request: ReplayRequest) -> Replayed:
    """Returns the rows of a past batch, up to the source or view that fails. Only reads the checkpoint and the sources
    of the query, which may be running.

    Raises: FindingsError if the batch cannot be read again; UsageError if the model is not terminal, or the version
    does not exist.
    """
    loaded = load_for_reading(request.project)
    with open_query(loaded, request.project, request.model, request.version) as query:
        ledger = _checked(query.model, query.state)
    secrets = Secrets(request.project.env)
    batch = "the last batch" if request.batch is None else f"batch {request.batch}"
    notice = f"Starting Spark to replay {batch} of {request.model}"
    problems = storage_problems(query.root, storage_location(loaded, query.model), secrets)
    with spark_for(loaded, [query.model], request.project, secrets, notice) as (runtime, signals), problems:
        stored = StoredCheckpoint(runtime.session, query.checkpoint)
        number = stored.last() if request.batch is None else request.batch
        _check_stream(query, number, storage_for(query.root, runtime.session))
        past = PastQuery(loaded, query.model, ledger, runtime, secrets, has_ended=stored.is_committed(number))
        replay = QueryReplay(loaded, query.model, query.checkpoint, past, runtime, secrets, signals)
        entries = replay.entries(number)
        nodes, failures = _until_failure(replay.nodes(entries, request.limit))
        case = None if request.test is None or failures else collect_test(replay, entries, request.test)
        notes = tuple(_notes(query, past, entries, storage_for(query.checkpoint, runtime.session)[0].modified))
    at, watermark = (_moment(ms) for ms in (planned_at(entries.planned), watermark_of(entries.planned)))
    shown = Replayed(
        query.model.name, query.state.version, entries.number, at, watermark, nodes, notes, failures=failures
    )
    return shown if case is None else _with_test(request.project, shown, case)


def _checked(model: CompiledModel, state: CheckpointState) -> Ledger:
    """Returns the ledger of a query with batches that can be replayed. Raises: FindingsError, UsageError."""
    place, why = model.file.location, None
    if not model.streaming:
        why = "it is a batch model, which has no checkpoint"
    elif model.config.trigger.kind == "continuous":
        why = "a continuous query has no batches"
    elif state.unreadable:
        why = f"its ledger cannot be read: {state.unreadable}"
    elif state.version and state.ledger is None:
        why = "its ledger is missing"
    if why is not None:
        raise FindingsError([no_batches(model.name, why, place)])
    if state.ledger is None:
        raise UsageError(f"`{model.name}` has not run yet, so there is no batch to replay")
    return state.ledger


def _until_failure(nodes: Iterator[ReplayedNode]) -> tuple[tuple[ReplayedNode, ...], tuple[Finding, ...]]:
    """Returns the nodes up to the first one that fails, and why it fails."""
    found: list[ReplayedNode] = []
    try:
        found.extend(nodes)
    except FindingsError as error:
        return tuple(found), tuple(error.findings)
    return tuple(found), ()


def _check_stream(query: StoredQuery, number: int, place: tuple[Storage, str]) -> None:
    """Raises: FindingsError if the batch is one of a backfill, whose files are in no log of the stream."""
    storage, root = place
    record = readable_record(storage.read_text(record_path(root, query.state.version)))
    if any(entry.batch == number for entry in record.entries):
        raise FindingsError([backfill_batch(query.model.name, number, query.model.file.location)])


def _notes(
    query: StoredQuery, past: PastQuery, entries: BatchEntries, modified: Callable[[str], float | None]
) -> Iterator[str]:
    """Yields what can differ from the batch that ran."""
    changed_at = past.ledger.history[-1].at if past.has_ended and len(past.ledger.history) > 1 else None
    written = modified(f"{query.checkpoint}/offsets/{entries.number}")
    if changed_at is not None and written is not None and written < datetime.fromisoformat(changed_at).timestamp():
        yield f"the query has changed since this batch, at {changed_at}; this is what its later form returns"
    elif past.query.changed:
        yield sql_note(past.query.changed, has_ended=past.has_ended)
    static = static_names(past.query.compiled, past.model)
    if static:
        yield f"{quoted_list(static)} {'is' if len(static) == 1 else 'are'} read as of now, not as of the batch"


def _moment(milliseconds: int | None) -> str | None:
    """Returns a time in ms since 1970 in ISO 8601 (UTC)."""
    if milliseconds is None:
        return None
    return utc_text(datetime.fromtimestamp(milliseconds / 1000, UTC))


def _with_test(project: ProjectRequest, shown: Replayed, case: TestOfBatch) -> Replayed:
    path, name, passes, notes = case.write(project)
    return replace(shown, test=(path, name, passes), notes=(*shown.notes, *notes))
