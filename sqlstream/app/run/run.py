"""`sqlstream run`: starts the selected terminal models and supervises them until they end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

from sqlstream.app.compile.explain_model import emission_of
from sqlstream.app.loading.artifacts import write_compiled
from sqlstream.app.loading.load import LoadAttempt, Loaded
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.loading.selected_queries import in_shard, keep_quarantines, select_queries
from sqlstream.app.request import RunRequest
from sqlstream.app.run.followers import following
from sqlstream.app.run.recorded import RecordedRun, RunOutcome, record_run
from sqlstream.app.run.selected import check_count, run_selected, selected_query, with_named, with_trigger
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding
from sqlstream.state.runs.events import Notice, QueriesSelected, RunEvent, WarningEmitted


def run_models(request: RunRequest, notify: Callable[[RunEvent], None]) -> RunOutcome:
    """Runs the selected terminal models until all have ended, and writes the artifacts. Passes all events to `notify`.

    No query starts before all of them have been checked. Ctrl-C, SIGTERM and SIGHUP stop each query after its running
    batch, or end the run before any query starts. Always writes run_results.json, so that nobody mistakes the results
    of an earlier run for those of this one. Raises: FindingsError, UsageError, both before any query starts.
    """
    return record_run(request, "run", notify, _run_loaded)


def _run_loaded(run: RecordedRun) -> RunOutcome:
    attempt, request, record = run.attempt, run.request, run.record
    loaded = attempt.readable()
    record.load(loaded.compiled.project.target.name, partial(emission_of, loaded.compiled))
    chosen = choose_queries(attempt, loaded, request, lambda line: record(Notice(line)))
    loaded, request, models = chosen.loaded, chosen.request, chosen.models
    write_compiled(loaded, tuple(loaded.compiled.models.values()))
    for warning in chosen.warnings:
        record(WarningEmitted(warning))
    if chosen.selected and not models:
        record(Notice(f"shard {request.selection.shard} has none of the selected queries ({chosen.selected})"))
    if not models:  # an empty shard, or no changes since the saved state
        return RunOutcome()
    for start in run.begin:
        start()
    with following(loaded, models, request, record, record.problem, record.keep_lag) as followers:
        followers = replace(followers, stored=record.stored)
        record.pass_to(followers.observers)
        record(QueriesSelected(tuple(selected_query(loaded.compiled, model) for model in models)))
        results = run_selected(loaded, models, request, record, run.signals, followers)
    return RunOutcome(results, alerts=record.open_alerts)


@dataclass(frozen=True)
class ChosenQueries:
    """What a run starts: the project and the request after the options of the command have been applied, the terminal
    models, the number of selected queries in all shards, and warnings.
    """

    loaded: Loaded
    request: RunRequest
    models: tuple[CompiledModel, ...]
    selected: int
    warnings: tuple[Finding, ...]


def choose_queries(
    attempt: LoadAttempt, loaded: Loaded, request: RunRequest, notify: Callable[[str], None]
) -> ChosenQueries:
    """Returns what a run of `request` starts. Raises: FindingsError, UsageError, as the run itself would."""
    selected = select_queries(attempt, loaded, request.selection, notify)
    request = with_named(loaded, selected.models, request, "run")
    models, kept = keep_quarantines(loaded.compiled, selected.models, selected.chosen, request.parallel)
    request = replace(request, kept=kept)
    loaded, models = with_trigger(loaded, models, request)
    # last, so that all shards check the same options and keep the same quarantines
    every, models = models, in_shard(models, request.selection)
    check_count(loaded, models)
    warnings = (*findings_of_selection(loaded.compiled, loaded.warnings, selected.involved), *selected.unmatched)
    return ChosenQueries(loaded, request, models, len(every), warnings)
