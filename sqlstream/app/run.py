"""`sqlstream run`: starts the selected terminal models and supervises them until they end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial

from sqlstream.app.explain_model import emission_of
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.garbage import restore_garbage_collection
from sqlstream.app.loading.load import Invocation, LoadAttempt, Loaded, try_load
from sqlstream.app.loading.selected_findings import adding_project_errors, check_selected, findings_of_selection
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.request import RunRequest, Selection
from sqlstream.app.running.quarantines import add_further_sinks, add_quarantines, quarantines_to_end
from sqlstream.app.running.record import RunRecorder
from sqlstream.app.running.signals import StopRequestedError, StopSignals, stop_signals
from sqlstream.app.systems import require_spark_system
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rules import check_models
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.project.configuration.config import Trigger
from sqlstream.project.files.files import find_project_root
from sqlstream.project.nearest import did_you_mean
from sqlstream.state.readers import source_uses
from sqlstream.state.runs.events import (
    Notice,
    QueriesSelected,
    QueryResult,
    RunEvent,
    SelectedQuery,
    Status,
    WarningEmitted,
)


@dataclass(frozen=True)
class RunOutcome:
    """The results of a run in the order of their start, and all warnings."""

    results: tuple[QueryResult, ...]
    warnings: tuple[Finding, ...]

    @property
    def succeeded(self) -> bool:
        """Whether no query failed. Queries are skipped if another one failed or a stop was requested."""
        return not any(result.status is Status.ERROR for result in self.results)


def run_models(request: RunRequest, notify: Callable[[RunEvent], None]) -> RunOutcome:
    """Runs the selected terminal models until all have ended, and writes the artifacts. Passes all events to `notify`.

    No query starts before all of them have been checked. Ctrl-C, SIGTERM and SIGHUP stop each query after its running
    batch, or end the run before any query starts. Always writes run_results.json, so that nobody mistakes the results
    of an earlier run for those of this one. Raises: FindingsError, UsageError, both before any query starts.
    """
    require_spark_system("run")
    invocation = Invocation()
    record = RunRecorder(find_project_root(request.project.folder), invocation, request.project.env, notify)
    record.begin(request.project.target)
    with stop_signals() as signals:
        with _recording_failure(record):
            outcome = _run_loaded(try_load(request.project, invocation), request, record, signals)
        record.end(succeeded=outcome.succeeded, findings=outcome.warnings)
    return outcome


@contextmanager
def _recording_failure(record: RunRecorder) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        findings = error.findings if isinstance(error, FindingsError) else ()
        with suppress(UsageError):  # the first error matters more than one while recording it
            record.end(succeeded=False, findings=findings)
        raise


def _run_loaded(attempt: LoadAttempt, request: RunRequest, record: RunRecorder, signals: StopSignals) -> RunOutcome:
    loaded = attempt.readable()
    record.load(loaded.compiled.project.target.name, partial(emission_of, loaded.compiled))
    with adding_project_errors(attempt, request.selection):
        chosen, unmatched = select(loaded.compiled, request.selection)
        models = terminal_models(loaded.compiled, chosen) if chosen else ()
    models = add_further_sinks(loaded.compiled, models, request.selection)
    models = add_quarantines(loaded.compiled, models, request.selection)
    involved = {*chosen, *(model.unique_id for model in models)}
    check_selected(attempt, loaded, involved, lambda line: record(Notice(line)))
    request = _with_named(loaded, models, request)
    loaded, models = _with_trigger(loaded, models, request)
    _check_count(loaded, models)
    write_compiled(loaded, tuple(loaded.compiled.models.values()))
    warnings = (*findings_of_selection(loaded.compiled, loaded.warnings, involved), *unmatched)
    for warning in warnings:
        record(WarningEmitted(warning))
    if not models:  # no changes since the saved state
        return RunOutcome((), warnings)
    record(QueriesSelected(tuple(_chosen(loaded.compiled, model) for model in models)))
    try:
        signals.check()
        from sqlstream.app.running.queries import run_queries  # loads pyspark

        restore_garbage_collection()
        return RunOutcome(run_queries(loaded, models, request, record, signals), warnings)
    except StopRequestedError:
        record(Notice("stopped before any query started"))
        return RunOutcome(_skip_all(models, record), warnings)


def _chosen(compiled: CompiledProject, model: CompiledModel) -> SelectedQuery:
    if not model.outputs:
        raise ValueError(f"{model.name} is not a terminal model")
    sinks, formats = (", ".join(getattr(each, key) for each in model.outputs) for key in ("sink", "format"))
    tables = dict.fromkeys(use.table for use in source_uses(compiled, model))
    mode, trigger = model.config.output_mode, str(model.config.trigger)
    return SelectedQuery(model.name, model.unique_id, sinks, formats, mode, trigger, tuple(tables), model.kind)


def _skip_all(models: tuple[CompiledModel, ...], notify: Callable[[RunEvent], None]) -> tuple[QueryResult, ...]:
    results = tuple(
        QueryResult.skipped(model.name, model.unique_id, index, len(models), model.kind)
        for index, model in enumerate(models, start=1)
    )
    for result in results:
        notify(result)
    return results


def _with_named(loaded: Loaded, models: tuple[CompiledModel, ...], request: RunRequest) -> RunRequest:
    """Returns the request with the selectors of its options replaced by the names of the queries that they select.

    Raises: FindingsError for a selector that is invalid or matches nothing; UsageError if it selects no query of this
    run.
    """
    names = partial(_named, loaded, models, request.selection)
    return replace(
        request,
        accept_state_change=names("--accept-state-change", request.accept_state_change),
        migrate=names("--migrate", request.migrate),
        parallel=names("--parallel", request.parallel),
    )


def _named(
    loaded: Loaded, models: tuple[CompiledModel, ...], selection: Selection, option: str, selectors: tuple[str, ...]
) -> tuple[str, ...]:
    named: list[str] = []
    for selector in selectors:
        chosen, _ = select(loaded.compiled, Selection((selector,), state=selection.state))
        found = [model.name for model in models if model.unique_id in chosen]
        if not found:
            problem = f"{option} {selector} selects no query of this run"
            raise UsageError(f"{problem}; {did_you_mean(selector, [model.name for model in models])}")
        named += found
    return tuple(named)


def _check_count(loaded: Loaded, models: tuple[CompiledModel, ...]) -> None:
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


def _with_trigger(
    loaded: Loaded, models: tuple[CompiledModel, ...], request: RunRequest
) -> tuple[Loaded, tuple[CompiledModel, ...]]:
    """Returns the project with the trigger `available_now` where it applies, after checking the rules again: for every
    selected stream if the request says so, and for quarantines that end with the other streams.
    """
    trigger = Trigger(kind="available_now")
    following = quarantines_to_end(models)
    changed = {
        model.unique_id: _triggered(model, trigger)
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


def _triggered(model: CompiledModel, trigger: Trigger) -> CompiledModel:
    return replace(model, config=model.config.model_copy(update={"trigger": trigger}))
