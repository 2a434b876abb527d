"""Plans a query without Spark: what the compiler knows, compared with its ledger."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.compiled_identity import ParallelQueries, identity_without_spark, with_stored_tables
from sqlstream.app.plan.details import describe
from sqlstream.app.plan.read_so_far import read_so_far
from sqlstream.app.session.target_storage import ReadableStorage, versioned_output
from sqlstream.app.stored.local_sources import header_findings
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.errors import Finding
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.writing.databases.database import DatabaseError, used_by_another
from sqlstream.spark.writing.databases.sqlite_file import sqlite_file
from sqlstream.state.checkpoints import CheckpointState, is_used_folder, read_checkpoint
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.lost_outputs import is_table_folder, lost_files, lost_output
from sqlstream.state.plan import Action, QueryPlan, StartOptions, plan_model
from sqlstream.state.refusals import StartRefusal, output_in_use
from sqlstream.state.verdicts import QueryVerdict, Verdict


def plan_without_spark(
    loaded: Loaded,
    storage: ReadableStorage,
    model: CompiledModel,
    parallel: ParallelQueries,
    removed: Sequence[QueryVerdict],
) -> QueryVerdict:
    """Returns the verdict on the query of `model`, whose checkpoint is in `storage`. `removed` are the queries of
    `storage` without a model.
    """
    root = storage.root_of(model)
    if not storage.can_read(root):
        reason = f"its checkpoint is in {root}, which only Spark can read: add --check"
        return QueryVerdict(model.name, Verdict.UNDECIDED, reason)
    try:
        is_parallel = parallel.runs_parallel(model, root)
        state = read_checkpoint(storage.of, root, parallel=is_parallel)
        compiled = with_stored_tables(loaded.compiled, model, storage.of, storage.base)
        identity = identity_without_spark(compiled, model, state)
        so_far = read_so_far(storage.of, root, state, identity)
    except OSError as error:
        return QueryVerdict(model.name, Verdict.UNDECIDED, f"its storage cannot be read: {error}")
    misread = header_findings(loaded.compiled, loaded.compiled.upstream(model.unique_id))
    if misread:
        return QueryVerdict(model.name, Verdict.REFUSE, misread[0].message, findings=tuple(misread))
    plan = plan_model(compiled, model, identity, state, StartOptions(parallel=is_parallel), read_so_far=so_far)
    if isinstance(plan, QueryPlan) and plan.action is Action.RESUME and state.last_commit >= 0:
        lost = tuple(_lost_outputs(storage, model, identity, state))
        plan = StartRefusal(lost) if lost else plan
    elif isinstance(plan, QueryPlan) and plan.action not in (Action.RESUME, Action.WRITE):
        try:
            used = tuple(_used_outputs(storage, model, identity, plan.version, state))
            # a query without versions may be an earlier one with another checkpoint or another name
            may_have_moved = not state.version and bool(model.config.checkpoint or removed)
            is_unknown = not used and _has_unknown_output(storage, model, plan.version, state, may_have_moved)
        except (OSError, DatabaseError) as error:
            return QueryVerdict(model.name, Verdict.UNDECIDED, f"its output cannot be read: {error}")
        if is_unknown:
            return QueryVerdict(model.name, Verdict.UNDECIDED, _ONLY_OUTPUT)
        plan = StartRefusal(used) if used else plan
    return describe(compiled, model, identity, state, plan, has_spark=False, is_parallel=is_parallel)


_ONLY_OUTPUT = "only its output shows whether another checkpoint has written there: add --check"


def _used_outputs(
    storage: ReadableStorage, model: CompiledModel, identity: QueryIdentity, version: int, state: CheckpointState
) -> Iterator[Finding]:
    """Yields the findings for outputs with batches of another checkpoint than the new version. Raises: OSError,
    DatabaseError.
    """
    for output, use in zip(model.outputs, identity.by_sink, strict=True):
        facts, path = format_of(output.format), _readable_path(storage, output, version, state.published)
        if path is None:
            continue
        if facts.is_embedded:
            problem = used_by_another(sqlite_file(path, model.query_id), model, SQLITE.quote(model.query_id))
            yield from () if problem is None else (problem,)
        elif facts.writes_files and is_used_folder(*storage.of(path), has_snapshots=use.writes_snapshots):
            yield output_in_use(model.name, path, model.file.location)


def _has_unknown_output(
    storage: ReadableStorage, model: CompiledModel, version: int, state: CheckpointState, may_have_moved: bool
) -> bool:
    """Returns whether only Spark can tell that an output of a new version has no batches of another checkpoint: that of
    an existing table of Delta Lake or Iceberg, or, if the query may have had another checkpoint, that of an output
    that cannot be read. Raises: OSError.
    """
    for output in model.outputs:
        facts, path = format_of(output.format), _readable_path(storage, output, version, state.published)
        if model.config.output_mode == "complete" and not facts.writes_files:
            continue  # it replaces all rows
        if path is None and may_have_moved and (facts.keeps_output or output.table is not None):
            return True
        if path is not None and facts.is_table and is_table_folder(*storage.of(path), output.format):
            return True
    return False


def _readable_path(storage: ReadableStorage, output: Output, version: int, published: Container[str]) -> str | None:
    """Returns the path to which a version writes, if it can be read without Spark. For a file of SQLite, it names the
    version, too.
    """
    written = versioned_output(storage.loaded, output, version, published)
    if written is None or "/" not in written:
        return None
    return (storage.local_path(written) or written) if storage.can_read(written) else None


def _lost_outputs(
    storage: ReadableStorage, model: CompiledModel, identity: QueryIdentity, state: CheckpointState
) -> Iterator[Finding]:
    """Yields the findings for outputs that lack committed batches. Databases and tables need Spark."""
    for output, use in zip(model.outputs, identity.by_sink, strict=True):
        path = _readable_path(storage, output, state.version, state.published)
        problem = None if path is None else lost_files(storage.of, use, path, state.last_commit)
        if problem is not None:
            yield lost_output(model.name, output.sink, problem, state.last_commit, model.location_of("sink"))
