"""Every query of a run analysed by Spark, checked, and planned on the checkpoint it has, before any is started."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass

from sqlstream.app.loading.load import Loaded
from sqlstream.app.request import RunRequest
from sqlstream.app.running.session import storage_base
from sqlstream.app.running.signals import StopSignals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.formats.formats import format_of
from sqlstream.spark.jvm.session import SparkRuntime
from sqlstream.spark.running.prepare import PreparedQuery, prepare_query, unrestartable
from sqlstream.spark.running.start import StartOrder
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.batch_logs import checkpoint_damage
from sqlstream.spark.storage.checkpoints import has_committed_files, read_checkpoint
from sqlstream.spark.storage.storage import Storage, held, in_use, storage_for, storage_problems, write_plainly
from sqlstream.spark.writing.tables import table_columns
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import checkpoint_path, output_path, output_table, query_root
from sqlstream.state.output_columns import table_problems
from sqlstream.state.plan import Action, CheckpointState, QueryPlan, StartOptions, plan_query
from sqlstream.state.refusals import StartRefusal, output_in_use, refusal_findings, unfit_table

LOOK_SECONDS = 0.1
"""How often it is looked whether a stop was asked for."""

CHECKED_AT_A_TIME = 8
"""Queries that are made ready at the same time: most of what takes long is waiting."""


@dataclass(frozen=True)
class Ready:
    """A checked query with the plan for its checkpoint, whose versions lie under `root` in `storage`: nothing yet where
    it `is_new`.
    """

    query: PreparedQuery
    plan: QueryPlan
    root: str
    storage: Storage
    state: CheckpointState
    is_new: bool

    def order(self, checks: Checks) -> StartOrder:
        """Returns how the query starts."""
        return StartOrder(
            self.query,
            self.query.model.config.trigger,
            checkpoint_path(self.root, self.plan.version) if self.query.model.streaming else None,
            self.output(checks),
            self.plan.action is Action.FRESH_EACH_RUN,
        )

    def output(self, checks: Checks) -> str | None:
        """Returns the path, URI or table that the query writes to, None for sinks that have no place."""
        output, version = self.query.output, self.plan.version
        if output.table is not None:
            return output_table(output.table, version)
        return None if output.path is None else output_path(storage_base(checks.loaded), output.path, version)

    def hold(self, checks: Checks) -> None:
        """Has the query for this process, unless that is so already: a run that its checks refuse writes nothing, not
        even a lock. Raises: FindingsError, where another process has the query or has made its checkpoint in between.
        """
        model = self.query.model
        if self.is_new:
            checks.held.enter_context(held(self.storage, self.root, model.name, model.file.location))
            if read_checkpoint(checks.storage_of, self.root) != self.state:
                raise FindingsError(
                    [in_use(model.name, "another run that has started in the meantime", model.file.location)]
                )

    def check_table(self, checks: Checks) -> None:
        """Looks whether the table that the query writes into can hold its columns. Raises: FindingsError."""
        model, identity, name = self.query.model, self.query.identity, self.output(checks)
        if self.query.output.table is None or name is None:
            return
        with storage_problems(name, model.file.location, checks.secrets):
            found = table_columns(self.query.frame.sparkSession, name)
        problems = table_problems(name, *found, identity) if found else ()
        if problems:
            places = [checks.loaded.compiled.locate_in(model.name, problem.offset) for problem in problems]
            raise FindingsError([unfit_table(model.name, name, *pair) for pair in zip(problems, places, strict=True)])

    def check_unused(self, checks: Checks) -> None:
        """Looks whether the output of a new checkpoint holds batches of another one. Raises: FindingsError."""
        model, output = self.query.model, self.output(checks)
        if output is None or not format_of(self.query.output.format).writes_files:
            return
        with storage_problems(output, model.file.location, checks.secrets):
            is_used = has_committed_files(checks.storage_of, output)
        if is_used:
            raise FindingsError([output_in_use(model.name, output, model.file.location)])

    def check_whole(self, checks: Checks) -> None:
        """Looks whether the checkpoint lets the query go on exactly. Raises: FindingsError."""
        model = self.query.model
        location = storage_location(checks.loaded, model)
        output = self.output(checks) if format_of(self.query.output.format).writes_files else None
        with storage_problems(self.root, location, checks.secrets):
            found = checkpoint_damage(checks.runtime.session, checkpoint_path(self.root, self.plan.version), output)
        if found:
            raise FindingsError([damage_finding(model.name, damage, model.file.location) for damage in found])


@dataclass(frozen=True)
class Checks:
    """What checking a query needs. `held` is what keeps other processes from the checked queries until it is closed."""

    loaded: Loaded
    request: RunRequest
    runtime: SparkRuntime
    secrets: Secrets
    held: ExitStack

    def storage_of(self, path: str) -> tuple[Storage, str]:
        """Returns the storage that holds `path`, and `path` as that storage takes it."""
        return storage_for(path, self.runtime.session)


def check_all(checks: Checks, models: Sequence[CompiledModel], signals: StopSignals) -> list[Ready]:
    """Every query analysed, checked and planned; the findings of all of them together.

    Several at a time, as sources and storage may be far away; those with code of the project's one after the other.
    """
    ready: list[Ready] = []
    findings: list[Finding] = []
    refusals: list[StartRefusal] = []
    pool = ThreadPoolExecutor(CHECKED_AT_A_TIME, "check")
    try:
        apart = {
            model.unique_id: pool.submit(_check, checks, model) for model in models if not _has_code(checks, model)
        }
        for model in models:
            signals.check()
            try:
                begun = apart.get(model.unique_id)
                ready.append(_awaited(begun, signals) if begun else _check(checks, model))
            except _RefusedError as refused:
                refusals.append(refused.refusal)
            except FindingsError as error:
                findings += [finding for finding in error.findings if finding not in findings]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after a signal; else there is nothing left
    findings += refusal_findings(refusals)
    if findings:
        raise FindingsError(findings)
    return ready


def _awaited(begun: Future[Ready], signals: StopSignals) -> Ready:
    """What a check gives, which a signal need not wait for. Raises: FindingsError, StopAskedError."""
    while not wait([begun], LOOK_SECONDS).done:
        signals.check()
    return begun.result()


def _has_code(checks: Checks, model: CompiledModel) -> bool:
    """Whether Python of the project's own is run to make the query ready, which may not be made for threads."""
    compiled = checks.loaded.compiled
    project = compiled.project
    upstream = {*compiled.graph.ancestors(model.unique_id), model.unique_id}
    models = any(compiled.models[node].file.is_python for node in upstream if node in compiled.models)
    sources = any(table.python for table in compiled.sources_of(model.unique_id))
    return bool(project.functions) or models or sources or (model.output is not None and bool(model.output.python))


def _check(checks: Checks, model: CompiledModel) -> Ready:
    loaded, request, runtime, secrets = checks.loaded, checks.request, checks.runtime, checks.secrets
    wanted = query_root(storage_base(loaded), model.query_id, model.config.checkpoint)
    with storage_problems(wanted, storage_location(loaded, model), secrets):
        storage, root = storage_for(wanted, runtime.session)
        is_new = not storage.exists(root)
        if not is_new:
            checks.held.enter_context(held(storage, root, model.name, model.file.location))
        state = read_checkpoint(checks.storage_of, root)
    resumes = state.is_used and not request.full_refresh and unrestartable(loaded.compiled, model) is None
    query = prepare_query(loaded.compiled, model, runtime, secrets, state.ledger if resumes else None)
    options = StartOptions(model.name in request.accept_state_change, request.full_refresh)
    plan = plan_query(
        query.identity,
        state,
        options,
        restartable=query.unrestartable is None,
        place_of=lambda name, offset: loaded.compiled.locate_in(name or model.name, offset),
    )
    if isinstance(plan, StartRefusal):
        raise _RefusedError(plan)
    ready = Ready(query, plan, root, storage, state, is_new)
    if query.output.table is None:
        write_plainly(query.frame.sparkSession, root, ready.output(checks))
    if model.streaming:
        ready.check_table(checks)
    if plan.action is Action.RESUME:
        ready.check_whole(checks)
    elif plan.action is not Action.WRITE:
        ready.check_unused(checks)
    return ready


class _RefusedError(Exception):
    """A query that may not start on its checkpoint."""

    def __init__(self, refusal: StartRefusal) -> None:
        super().__init__()
        self.refusal = refusal


def storage_location(loaded: Loaded, model: CompiledModel) -> Location:
    """Returns where it is said where the checkpoint of `model` lies: in the model, or else by the target."""
    return model.config_places.get("checkpoint", loaded.compiled.project.target.location)
