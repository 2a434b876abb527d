"""Checks that one more batch with history is right for a query."""

from __future__ import annotations

from sqlstream.app.loading.load import Loaded
from sqlstream.app.running.ready import CheckContext, CheckedQuery
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.project.wording import quoted_list
from sqlstream.state.backfill.record import Backfill
from sqlstream.state.backfill.refusals import beside, cannot_backfill
from sqlstream.state.batch_logs import entry_names
from sqlstream.state.changes import describe_changes
from sqlstream.state.layout import checkpoint_path
from sqlstream.state.plan import Action
from sqlstream.state.restarts import unrestartable


def check_model(loaded: Loaded, model: CompiledModel) -> None:
    """Checks what is known without Spark. Raises: FindingsError."""
    run, why = f"`sqlstream run --select {model.name}`", unrestartable(loaded.compiled, model)
    if not model.streaming:
        raise _refused(model, "it is a batch model, and each run writes all rows of its inputs", f"run it: {run}")
    if model.config.output_mode == "complete":
        raise _refused(model, "in complete mode, each batch replaces all rows by its own", beside(model.name))
    if why is not None:
        raise _refused(model, f"it starts with a new checkpoint in every run, because {why}", f"run it: {run}")
    if not model.config.trigger.has_batches:
        kind = model.config.trigger.kind.replace("_", "-")
        raise _refused(model, f"its trigger is {kind}, and such a query has no batches to add to", beside(model.name))
    keys = model.config.unique_key
    if keys:
        why = f"it replaces rows by their {quoted_list(keys)}, and older rows would replace newer ones"
        raise _refused(model, why, beside(model.name))


def check_plan(query: CheckedQuery) -> None:
    """Checks what the ledger and Spark's plan say. Raises: FindingsError."""
    model, plan = query.query.model, query.plan
    run = f"`sqlstream run --available-now --select {model.name}`"
    if query.query.identity.stateful:
        why = "it keeps state, and the state after the present rows cannot take up older ones"
        raise _refused(model, why, beside(model.name))
    if plan.action is not Action.RESUME or query.state.last_commit < 0:
        why = "it has not committed a batch yet, so there is no stream that left out history"
        raise _refused(model, why, f"run it first: {run}; its starting offsets decide what it reads")
    ledger, abandoned = query.state.ledger, query.state.abandoned
    if ledger is not None and abandoned is not None and describe_changes(ledger.identity, abandoned.identity):
        why = "a changed query was started on its checkpoint, and has committed nothing"
        raise _refused(model, why, f"run the present query first: {run}")
    if plan.changes:
        why = f"it has changed since its last run: {'; '.join(plan.changes)}"
        raise _refused(model, why, f"run the changed query first: {run}")


def open_batch(query: CheckedQuery, checks: CheckContext, begun: Backfill | None) -> None:
    """Checks that no batch of the stream is unfinished. `begun` is a backfill that was interrupted. Raises:
    FindingsError.
    """
    model, last = query.query.model, query.state.last_commit
    storage, checkpoint = checks.storage_of(checkpoint_path(query.root, query.state.version))
    offsets = max(entry_names(storage.names(f"{checkpoint}/offsets")), default=-1)
    if offsets > last and (begun is None or offsets > begun.batch):
        why = f"its batch {offsets} has begun and is not committed"
        fix = f"complete it first: `sqlstream run --available-now --select {model.name}`"
        raise _refused(model, why, fix)


def _refused(model: CompiledModel, why: str, fix: str) -> FindingsError:
    return FindingsError([cannot_backfill(model.name, why, fix, model.file.location)])
