"""Plans queries with Spark, which shows the optimized plan of each changed query that keeps state."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlstream.app.loading.load import Loaded
from sqlstream.app.planning.beside import ParallelQueries
from sqlstream.app.planning.breaks import stored_differences, with_breaks
from sqlstream.app.planning.checking import spark_for_check
from sqlstream.app.planning.details import describe, removed_queries
from sqlstream.app.planning.read_so_far import read_so_far
from sqlstream.app.planning.sql_judge import sql_judge
from sqlstream.app.request import EVERYTHING, PlanRequest
from sqlstream.app.running.local_files import header_findings
from sqlstream.app.running.ready import storage_location
from sqlstream.app.running.session import storage_base
from sqlstream.app.running.signals import StopSignals
from sqlstream.app.running.stored_outputs import StoredOutputs
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.running.prepare import prepare_query
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.storage import storage_for, storage_problems
from sqlstream.state.checkpoints import read_checkpoint
from sqlstream.state.layout import query_root
from sqlstream.state.plan import StartOptions, plan_query
from sqlstream.state.progress.positions import DatedFiles
from sqlstream.state.restarts import unrestartable
from sqlstream.state.verdicts import ProjectPlan, QueryVerdict, Verdict


def plan_with_spark(loaded: Loaded, models: Sequence[CompiledModel], request: PlanRequest) -> ProjectPlan:
    """Returns the plan of `models`. Raises: FindingsError if Spark cannot start; KeyboardInterrupt after a signal."""
    project, secrets = request.project, Secrets(request.project.env)
    with spark_for_check(loaded, models, project, secrets, "plan") as (runtime, signals):
        planner = _Planner(loaded, runtime, secrets, request.parallel)
        planned = [planner.plan(model, signals) for model in models]
        differences_of = stored_differences(loaded.compiled, planner.files_of, storage_base(loaded))
        queries = list(with_breaks(loaded.compiled, planned, differences_of))
        if request.selection == EVERYTHING:
            queries += removed_queries(loaded, planner.files_of, storage_base(loaded))
        return ProjectPlan(loaded.compiled.project.target.name, tuple(queries), runtime.version)


class _Planner:
    def __init__(self, loaded: Loaded, runtime: SparkRuntime, secrets: Secrets, parallel: Collection[str]) -> None:
        self._loaded, self._runtime, self._secrets = loaded, runtime, secrets
        self._outputs = StoredOutputs(loaded, runtime.session, secrets, {})
        self._parallel = ParallelQueries(loaded.compiled, parallel, self.files_of, storage_base(loaded))

    def files_of(self, path: str) -> tuple[DatedFiles, str]:
        """Returns the files at a path or URI, and the path in the form that they accept."""
        return storage_for(path, self._runtime.session)

    def plan(self, model: CompiledModel, signals: StopSignals) -> QueryVerdict:
        """Returns the verdict on the query of `model`. Raises: StopRequestedError."""
        signals.check()
        try:
            return self._plan(model)
        except FindingsError as error:
            return QueryVerdict(model.name, Verdict.REFUSE, error.findings[0].message, findings=error.findings)

    def _plan(self, model: CompiledModel) -> QueryVerdict:
        loaded = self._loaded
        root = query_root(storage_base(loaded), model.query_id, model.config.checkpoint)
        with storage_problems(root, storage_location(loaded, model), self._secrets):
            is_parallel = self._parallel.runs_beside(model, root)
            state = read_checkpoint(self.files_of, root, parallel=is_parallel)
        restartable = unrestartable(loaded.compiled, model) is None
        compiled = self._outputs.resolve([model.unique_id])
        ledger = state.ledger if state.is_used and restartable else None
        misread = header_findings(loaded.compiled, loaded.compiled.upstream(model.unique_id))
        if misread:
            raise FindingsError(misread)
        query = prepare_query(compiled, model, self._runtime, self._secrets, ledger)
        try:
            plan = plan_query(
                query.identity,
                state,
                StartOptions(parallel=is_parallel),
                restartable=query.unrestartable is None,
                place_of=lambda name, offset: loaded.compiled.locate_in(name or model.name, offset),
                find_signature=query.comparable_signature,
                judge_by_sql=sql_judge(loaded.compiled, model),
                find_ids=lambda: query.input_ids,
                read_so_far=read_so_far(self.files_of, root, state, query.identity),
            )
            found = loaded.compiled, model, query.identity, state, plan
            return describe(*found, has_spark=True, is_parallel=is_parallel)
        finally:
            query.release()
