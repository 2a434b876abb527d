"""`sqlstream plan`: says what the next run does with the checkpoint of each query. Writes nothing."""

from __future__ import annotations

from dataclasses import replace

from sqlstream.app.loading.load import try_load
from sqlstream.app.loading.selected_queries import in_shard, select_queries
from sqlstream.app.loading.selecting import named_queries
from sqlstream.app.plan.breaks import stored_differences, with_breaks
from sqlstream.app.plan.compiled_identity import ParallelQueries
from sqlstream.app.plan.details import removed_queries, with_previous_names
from sqlstream.app.plan.without_spark import plan_without_spark
from sqlstream.app.request import EVERYTHING, PlanRequest
from sqlstream.app.session.target_storage import (
    needs_other_system,
    readable_storage,
    unreadable_storage,
    why_only_spark,
)
from sqlstream.app.systems import is_windows
from sqlstream.errors import FindingsError
from sqlstream.state.verdicts import ProjectPlan


def plan_project(request: PlanRequest) -> ProjectPlan:
    """Returns the plan of the selected queries. Starts Spark to check, or if only Spark can read the ledgers.

    Raises: FindingsError; KeyboardInterrupt after a signal while Spark runs.
    """
    attempt = try_load(request.project)
    loaded = attempt.readable()
    models = select_queries(attempt, loaded, request.selection, request.project.notify).models
    named = named_queries(loaded, models, request.selection, "--parallel", request.parallel, "plan")
    request = replace(request, parallel=named)
    models = in_shard(models, request.selection)
    reason = None if request.check else why_only_spark(loaded, models)
    if reason is not None and is_windows():
        raise FindingsError([needs_other_system(loaded, reason)])
    storage = None if request.check or reason is not None else readable_storage(loaded)
    if storage is None:
        from sqlstream.app.plan.ready import plan_with_spark  # loads pyspark

        return plan_with_spark(loaded, models, request, reason)
    try:
        removed = removed_queries(loaded, storage.of, storage.base)
    except OSError as error:
        raise FindingsError([unreadable_storage(loaded, error)]) from error
    parallel = ParallelQueries(loaded.compiled, named, storage.of, storage.base)
    queries = tuple(plan_without_spark(loaded, storage, model, parallel, removed) for model in models)
    queries = with_breaks(loaded.compiled, queries, stored_differences(loaded.compiled, storage.of, storage.base))
    queries = with_previous_names(loaded.compiled, queries, removed)
    warnings = tuple(finding for finding in loaded.findings if finding.code == "rules-off")
    queries = (*queries, *(removed if request.selection == EVERYTHING else ()))
    return ProjectPlan(loaded.compiled.project.target.name, queries, warnings=warnings)
