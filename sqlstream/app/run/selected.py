"""The queries of a run or a build: which options apply to them, and how they start."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from sqlstream.app.loading.load import Loaded
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selected_queries import is_quarantine, quarantines_to_end
from sqlstream.app.loading.selecting import named_queries
from sqlstream.app.request import RunRequest
from sqlstream.app.run.followers import RunFollowers
from sqlstream.app.session.signals import StopRequestedError, StopSignals
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rules import check_models
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.configuration.trigger import AVAILABLE_NOW
from sqlstream.spark.jvm.pyspark_package import require_pyspark
from sqlstream.state.readers import source_uses
from sqlstream.state.runs.events import Notice, QueryResult, RunEvent, SelectedQuery

Notify = Callable[[RunEvent], None]


def selected_query(compiled: CompiledProject, model: CompiledModel) -> SelectedQuery:
    """Returns the query of a terminal model as events describe it."""
    if not model.outputs:
        raise ValueError(f"{model.name} is not a terminal model")
    sinks, formats = (", ".join(getattr(each, key) for each in model.outputs) for key in ("sink", "format"))
    tables = dict.fromkeys(use.table for use in source_uses(compiled, model))
    mode, trigger = model.config.output_mode, str(model.config.trigger)
    return SelectedQuery(
        model.name, model.unique_id, sinks, formats, mode, trigger, tuple(tables), model.kind, is_quarantine(model)
    )


def run_selected(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: RunRequest,
    notify: Notify,
    signals: StopSignals,
    followers: RunFollowers,
) -> tuple[QueryResult, ...]:
    """Runs `models` until all have ended, and returns their results. Raises: FindingsError before any query starts."""
    try:
        signals.check()
        require_pyspark()
        from sqlstream.app.run.queries import run_queries  # loads pyspark

        return run_queries(loaded, models, request, notify, signals, followers)
    except StopRequestedError:
        notify(Notice("stopped before any query started"))
        return skip_all(models, notify, "a stop was requested")


def skip_all(models: Sequence[CompiledModel], notify: Notify, reason: str) -> tuple[QueryResult, ...]:
    """Returns the results of queries that do not start, for this reason."""
    results = tuple(
        QueryResult.skipped(model.name, model.unique_id, index, len(models), model.kind, reason)
        for index, model in enumerate(models, start=1)
    )
    for result in results:
        notify(result)
    return results


def with_named(loaded: Loaded, models: Sequence[CompiledModel], request: RunRequest, command: str) -> RunRequest:
    """Returns the request with the selectors of its options replaced by the names of the queries that they select.

    Raises: FindingsError for a selector that is invalid or matches nothing; UsageError if it selects no query of this
    command.
    """
    names = partial(named_queries, loaded, models, request.selection, command=command)
    return replace(
        request,
        accept_state_change=names("--accept-state-change", request.accept_state_change),
        migrate=names("--migrate", request.migrate),
        parallel=names("--parallel", request.parallel),
    )


def check_count(loaded: Loaded, models: Sequence[CompiledModel]) -> None:
    """Raises: FindingsError if the run has too many endless streams. Each of them uses a thread and memory."""
    target = loaded.compiled.project.target
    endless = [model for model in models if not model.ends]
    if len(endless) <= target.max_streams:
        return
    problem = Finding(
        "too-many-streams",
        f"{len(endless):,} of the selected queries run until you stop them",
        f"target `{target.name}` starts at most {target.max_streams:,} of them together, because each uses a thread "
        "and memory while it runs",
        "select fewer with --select, use several processes, or increase max_streams",
        target.location,
    )
    raise FindingsError([problem])


def with_trigger(
    loaded: Loaded, models: tuple[CompiledModel, ...], request: RunRequest
) -> tuple[Loaded, tuple[CompiledModel, ...]]:
    """Returns the project with the trigger `available_now` where it applies, after checking the rules again: for every
    selected stream if the request says so, and for quarantines that end with the other streams. Raises: FindingsError.
    """
    following = quarantines_to_end(models)
    changed = {
        model.unique_id: replace(model, config=model.config.model_copy(update={"trigger": AVAILABLE_NOW}))
        for model in models
        if model.streaming and (request.available_now or model.unique_id in following)
    }
    if not changed:
        return loaded, models
    compiled: CompiledProject = replace(loaded.compiled, models={**loaded.compiled.models, **changed})
    found = findings_of_selection(compiled, check_models(compiled), [model.unique_id for model in models])
    errors = [finding for finding in found if finding.is_error]
    if errors:
        raise FindingsError(errors)
    return replace(loaded, compiled=compiled), tuple(changed.get(model.unique_id, model) for model in models)
