"""Every query of a run analysed by Spark, checked, and planned on the checkpoint it has, before any is started."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlstream.app.loading import Loaded
from sqlstream.app.request import RunRequest
from sqlstream.app.session import storage_base
from sqlstream.app.signals import StopSignals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.rules.outputs import FILE_FORMATS
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.spark.batch_logs import checkpoint_damage
from sqlstream.spark.prepare import PreparedQuery, prepare_query, unrestartable
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import SparkRuntime
from sqlstream.spark.start import StartOrder
from sqlstream.spark.storage import Storage, read_checkpoint, storage_for, storage_problems
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import checkpoint_path, output_path, output_table, query_root
from sqlstream.state.plan import Action, CheckpointState, QueryPlan, Wishes, plan_query


@dataclass(frozen=True)
class Ready:
    """A checked query with the plan for its checkpoint, whose versions lie under `root` in `storage`."""

    query: PreparedQuery
    plan: QueryPlan
    root: str
    storage: Storage
    state: CheckpointState

    def order(self, checks: Checks) -> StartOrder:
        """Returns how the query starts."""
        return StartOrder(
            self.query,
            self.query.model.config.trigger,
            checkpoint_path(self.root, self.plan.version) if self.query.model.streaming else None,
            self.output(checks),
            lambda: self.check_whole(checks),
        )

    def output(self, checks: Checks) -> str | None:
        """Returns the path, URI or table that the query writes to, None for sinks that have no place."""
        output, version = self.query.output, self.plan.version
        if output.table is not None:
            return output_table(output.table, version)
        return None if output.path is None else output_path(storage_base(checks.loaded), output.path, version)

    def check_whole(self, checks: Checks) -> None:
        """Looks whether the checkpoint lets the query go on exactly. Raises: FindingsError."""
        model = self.query.model
        location = storage_location(checks.loaded, model)
        output = self.output(checks) if self.query.output.format in FILE_FORMATS else None
        with storage_problems(self.root, location, checks.secrets):
            found = checkpoint_damage(checks.runtime.session, checkpoint_path(self.root, self.plan.version), output)
        if found:
            raise FindingsError([damage_finding(model.name, damage, model.file.location) for damage in found])


@dataclass(frozen=True)
class Checks:
    """What checking a query needs."""

    loaded: Loaded
    request: RunRequest
    runtime: SparkRuntime
    secrets: Secrets


def check_all(checks: Checks, models: Sequence[CompiledModel], signals: StopSignals) -> list[Ready]:
    """Every query analysed, checked and planned; the findings of all of them together."""
    ready: list[Ready] = []
    findings: list[Finding] = []
    for model in models:
        signals.check()
        try:
            ready.append(_check(checks, model))
        except FindingsError as error:
            findings += [finding for finding in error.findings if finding not in findings]
    if findings:
        raise FindingsError(findings)
    return ready


def _check(checks: Checks, model: CompiledModel) -> Ready:
    loaded, request, runtime, secrets = checks.loaded, checks.request, checks.runtime, checks.secrets
    wanted = query_root(storage_base(loaded), model.query_id, model.config.checkpoint)
    with storage_problems(wanted, storage_location(loaded, model), secrets):
        storage, root = storage_for(wanted, runtime.session)
        state = read_checkpoint(storage, root)
    refresh = model.name in request.full_refresh
    resumes = state.has_batches and not refresh and unrestartable(loaded.compiled, model) is None
    query = prepare_query(loaded.compiled, model, runtime, secrets, state.ledger if resumes else None)
    wishes = Wishes(model.name in request.accept_state_change, refresh)
    plan = plan_query(
        query.identity, state, wishes, restartable=query.unrestartable is None, location=model.file.location
    )
    if isinstance(plan, Finding):
        raise FindingsError([plan])
    ready = Ready(query, plan, root, storage, state)
    if plan.action is Action.RESUME:
        ready.check_whole(checks)
    return ready


def storage_location(loaded: Loaded, model: CompiledModel) -> Location:
    """Returns where it is said where the checkpoint of `model` lies: in the model, or else by the target."""
    return model.config_places.get("checkpoint", loaded.compiled.project.target.location)
