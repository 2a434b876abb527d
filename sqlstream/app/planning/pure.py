"""Plans a query without Spark: what the compiler knows, compared with its ledger."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.beside import ParallelQueries
from sqlstream.app.planning.details import describe
from sqlstream.app.planning.identity import identity_without_spark
from sqlstream.app.planning.local_files import files_of
from sqlstream.app.planning.read_so_far import read_so_far
from sqlstream.app.planning.sql_judge import sql_judge
from sqlstream.app.planning.stored_tables import with_stored_tables
from sqlstream.app.running.local_files import header_findings
from sqlstream.app.running.places import place_of_output
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding
from sqlstream.project.files.paths import plain_path
from sqlstream.state.checkpoints import read_checkpoint
from sqlstream.state.layout import query_root
from sqlstream.state.ledger import QueryIdentity
from sqlstream.state.lost_outputs import lost_files, lost_output
from sqlstream.state.plan import Action, CheckpointState, QueryPlan, StartOptions, plan_query
from sqlstream.state.refusals import StartRefusal
from sqlstream.state.restarts import unrestartable
from sqlstream.state.verdicts import QueryVerdict, Verdict


def plan_without_spark(loaded: Loaded, storage: str, model: CompiledModel, parallel: ParallelQueries) -> QueryVerdict:
    """Returns the verdict on the query of `model`, whose checkpoint is in the local folder `storage`."""
    root = query_root(storage, model.query_id, model.config.checkpoint)
    if not plain_path("/", root).startswith("/"):
        reason = f"its checkpoint is in {root}, which only Spark can read: add --check"
        return QueryVerdict(model.name, Verdict.UNDECIDED, reason)
    try:
        is_parallel = parallel.runs_beside(model, root)
        state = read_checkpoint(files_of, root, parallel=is_parallel)
        compiled = with_stored_tables(loaded.compiled, model, files_of, storage)
        identity = identity_without_spark(compiled, model, state)
        so_far = read_so_far(files_of, root, state, identity)
    except OSError as error:
        return QueryVerdict(model.name, Verdict.UNDECIDED, f"its storage cannot be read: {error}")
    misread = header_findings(loaded.compiled, loaded.compiled.upstream(model.unique_id))
    if misread:
        return QueryVerdict(model.name, Verdict.REFUSE, misread[0].message, findings=tuple(misread))
    plan = plan_query(
        identity,
        state,
        StartOptions(parallel=is_parallel),
        restartable=unrestartable(compiled, model) is None,
        place_of=lambda name, offset: compiled.locate_in(name or model.name, offset),
        judge_by_sql=sql_judge(compiled, model),
        read_so_far=so_far,
    )
    if isinstance(plan, QueryPlan) and plan.action is Action.RESUME and state.last_commit >= 0:
        lost = tuple(_lost_outputs(loaded, model, identity, state))
        plan = StartRefusal(lost) if lost else plan
    return describe(compiled, model, identity, state, plan, has_spark=False, is_parallel=is_parallel)


def _lost_outputs(
    loaded: Loaded, model: CompiledModel, identity: QueryIdentity, state: CheckpointState
) -> Iterator[Finding]:
    """Yields the findings for local outputs that lack committed batches. Databases and tables need Spark."""
    for output, use in zip(model.outputs, identity.by_sink, strict=True):
        place = place_of_output(loaded, output, state.version, state.published)
        path = "" if place is None else plain_path("/", place) if "/" in place else ""
        problem = lost_files(files_of, use, path, state.last_commit) if path.startswith("/") else None
        if problem is not None:
            yield lost_output(model.name, output.sink, problem, state.last_commit, model.place_of("sink"))
