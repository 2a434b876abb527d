"""Plans queries with Spark, which shows the optimized plan of each changed query that keeps state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from sqlstream.app.loading.load import Loaded
from sqlstream.app.plan.breaks import stored_differences, with_breaks
from sqlstream.app.plan.details import describe, removed_queries
from sqlstream.app.plan.ready import CheckContext, CheckedQuery, plan_on_checkpoint
from sqlstream.app.request import EVERYTHING, PlanRequest, RunRequest
from sqlstream.app.session.checking import spark_for_check
from sqlstream.app.session.target_storage import storage_base
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.outputs import stages
from sqlstream.errors import FindingsError
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.query_locks import NoLocks
from sqlstream.spark.writing.databases.database import DatabaseError
from sqlstream.state.refusals import StartRefusal
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict


def plan_with_spark(loaded: Loaded, models: Sequence[CompiledModel], request: PlanRequest) -> ProjectPlan:
    """Returns the plan of `models`. Raises: FindingsError if Spark cannot start; KeyboardInterrupt after a signal."""
    project, secrets = request.project, Secrets(request.project.env)
    with spark_for_check(loaded, models, project, secrets, "plan") as (runtime, signals):
        run = RunRequest(project, request.selection, parallel=request.parallel)
        checks = CheckContext(loaded, run, runtime, secrets, NoLocks(secrets, lambda _: None))
        planned = {}
        for stage in stages(loaded.compiled, models):
            for model in stage:
                signals.check()
                planned[model.unique_id] = _plan(checks, model)
        verdicts = [planned[model.unique_id] for model in models]
        differences_of = stored_differences(loaded.compiled, checks.storage_of, storage_base(loaded))
        queries = list(with_breaks(loaded.compiled, verdicts, differences_of))
        if request.selection == EVERYTHING:
            queries += removed_queries(loaded, checks.storage_of, storage_base(loaded))
        return ProjectPlan(loaded.compiled.project.target.name, tuple(queries), runtime.version)


def _plan(checks: CheckContext, model: CompiledModel) -> QueryVerdict:
    """Returns the verdict on the query of `model`, after the checks that a run makes before it starts any query."""
    try:
        planned = plan_on_checkpoint(checks, model)
    except FindingsError as error:
        return QueryVerdict(model.name, Verdict.REFUSE, error.findings[0].message, findings=error.findings)
    plan, unanswered = planned.plan, None
    try:
        ready = planned.ready(checks)
        if isinstance(ready, CheckedQuery):
            ready.check_files(checks)
            ready.record_output(checks)
    except FindingsError as error:
        plan = StartRefusal(error.findings)
    except DatabaseError as error:
        unanswered = str(error)
    finally:
        planned.query.release()
    found = checks.loaded.compiled, model, planned.query.identity, planned.state, plan
    verdict = describe(*found, has_spark=True, is_parallel=planned.is_parallel)
    if unanswered is None:
        return verdict
    return replace(verdict, verdict=Verdict.UNDECIDED, reason=f"its table could not be checked: {unanswered}")
