"""The part of a run that needs Spark: check every query, decide on every checkpoint, then start them all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from sqlstream.app.loading import Loaded
from sqlstream.app.request import RunRequest
from sqlstream.app.signals import stop_on_signals
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.paths import join
from sqlstream.spark.java import find_java
from sqlstream.spark.memory import memory_table
from sqlstream.spark.prepare import PreparedQuery, prepare_query, unrestartable
from sqlstream.spark.runner import Runner
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import SparkLaunch, SparkRuntime, start_spark, stop_spark
from sqlstream.spark.start import StartOrder
from sqlstream.spark.storage import Storage, read_checkpoint, storage_for, storage_problems, write_ledger
from sqlstream.state.events import Notice, ProjectFound, QueryResult, RunEvent
from sqlstream.state.layout import checkpoint_path, output_path, query_root
from sqlstream.state.ledger import Ledger
from sqlstream.state.plan import Action, CheckpointState, QueryPlan, Wishes, plan_query
from sqlstream.version import __version__

spark_logger = logging.getLogger("sqlstream.spark")


@dataclass(frozen=True)
class Ready:
    """A checked query with the plan for its checkpoint, whose versions lie under `root` in `storage`."""

    query: PreparedQuery
    plan: QueryPlan
    root: str
    storage: Storage
    state: CheckpointState


def run_queries(
    loaded: Loaded, models: Sequence[CompiledModel], request: RunRequest, tell: Callable[[RunEvent], None]
) -> tuple[QueryResult, ...]:
    """Runs `models` in one Spark session and returns their results. Raises: FindingsError, with nothing started."""
    _check_target(loaded)
    java = find_java(request.project.env)
    if isinstance(java, Finding):
        raise FindingsError([java])
    secrets = Secrets(request.project.env)
    runtime = start_session(loaded, secrets, console_to_stderr=request.console_to_stderr)
    try:
        tell(_found(loaded, runtime))
        ready = _check_all(loaded, models, request, runtime, secrets)
        base = storage_base(loaded)
        for item in ready:
            with storage_problems(item.root, _storage_location(loaded, item.query.model), secrets):
                _write_ledger(item, base, runtime)
        orders = [_order(item, base, tell) for item in ready]
        runner = Runner(secrets, tell)
        with stop_on_signals(runner.request_stop):
            results = runner.run(orders, stop_after_seconds=request.stop_after_seconds)
        _show_memory(ready, results, tell)
        return results
    finally:
        stop_spark(runtime)


def _found(loaded: Loaded, runtime: SparkRuntime) -> ProjectFound:
    project, models = loaded.compiled.project, loaded.compiled.models
    return ProjectFound(
        models=len(models),
        sources=len(project.sources),
        sinks=len(project.sinks),
        seeds=len(project.seeds),
        sqlstream_version=__version__,
        spark_version=runtime.version,
    )


def _check_target(loaded: Loaded) -> None:
    target = loaded.compiled.project.target
    if target.remote is None:
        return
    problem = Finding(
        "unsupported-target",
        f"target `{target.name}` runs over Spark Connect, which this version cannot start queries on",
        f"remote: {target.remote} gives no access to what a run needs of Spark's own process",
        "give the target a master: such as local[*] or spark://host:7077",
        target.location,
    )
    raise FindingsError([problem])


def storage_base(loaded: Loaded) -> str:
    """Returns the target's storage as an absolute path or URI."""
    project = loaded.compiled.project
    return join(str(project.root), project.target.storage)


def start_session(loaded: Loaded, secrets: Secrets, *, console_to_stderr: bool = False) -> SparkRuntime:
    """Returns a started Spark for the project's target; console sinks print where `console_to_stderr` says.

    Raises: FindingsError.
    """
    project = loaded.compiled.project
    missing = secrets.missing(project.target.spark, project.target.location)
    if missing:
        raise FindingsError(missing)
    warehouse = join(storage_base(loaded), "warehouse")
    launch = SparkLaunch(f"sqlstream {project.name}", warehouse, spark_logger.info, console_to_stderr)
    return start_spark(project.target, secrets, launch)


def _check_all(
    loaded: Loaded, models: Sequence[CompiledModel], request: RunRequest, runtime: SparkRuntime, secrets: Secrets
) -> list[Ready]:
    """Every query analysed, checked and planned; the findings of all of them together."""
    ready: list[Ready] = []
    findings: list[Finding] = []
    for model in models:
        try:
            ready.append(_check(loaded, model, request, runtime, secrets))
        except FindingsError as error:
            findings += [finding for finding in error.findings if finding not in findings]
    if findings:
        raise FindingsError(findings)
    return ready


def _check(loaded: Loaded, model: CompiledModel, request: RunRequest, runtime: SparkRuntime, secrets: Secrets) -> Ready:
    wanted = query_root(storage_base(loaded), model.query_id, model.config.checkpoint)
    with storage_problems(wanted, _storage_location(loaded, model), secrets):
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
    return Ready(query, plan, root, storage, state)


def _storage_location(loaded: Loaded, model: CompiledModel) -> Location:
    return model.config_places.get("checkpoint", loaded.compiled.project.target.location)


def _write_ledger(ready: Ready, base: str, runtime: SparkRuntime) -> None:
    if ready.plan.writes_ledger:
        write_ledger(ready.storage, ready.root, _ledger(ready, _output(ready, base), runtime))


def _output(ready: Ready, base: str) -> str | None:
    path = ready.query.output.path
    return None if path is None else output_path(base, path, ready.plan.version)


def _order(ready: Ready, base: str, tell: Callable[[RunEvent], None]) -> StartOrder:
    """The order to start `ready`, once what is unusual about it is said."""
    model, plan = ready.query.model, ready.plan
    if plan.action is Action.FRESH_EACH_RUN:
        why = ready.query.unrestartable
        tell(Notice(f"{model.name}: starts with a fresh checkpoint on every run, because {why}"))
    if plan.action is Action.REFRESH:
        old = f"version {ready.state.version} of its checkpoint and output stay where they are"
        tell(Notice(f"{model.name}: starts over as version {plan.version}; {old}"))
    if plan.changes:
        tell(Notice(f"{model.name}: goes on with its checkpoint although {'; '.join(plan.changes)}"))
    return StartOrder(
        ready.query, model.config.trigger, checkpoint_path(ready.root, plan.version), _output(ready, base)
    )


def _ledger(ready: Ready, output: str | None, runtime: SparkRuntime) -> Ledger:
    now = datetime.now(UTC).isoformat(timespec="seconds")
    accepted = ready.state.ledger.accepted if ready.state.ledger and ready.plan.action is Action.RESUME else ()
    if ready.plan.accepted:
        accepted = (*accepted, {"at": now, "changes": list(ready.plan.changes)})
    return Ledger(
        identity=ready.query.identity,
        version=ready.plan.version,
        written_at=now,
        sqlstream_version=__version__,
        spark_version=runtime.version,
        reason=str(ready.plan.action),
        output=output,
        accepted=accepted,
    )


def _show_memory(ready: Sequence[Ready], results: Sequence[QueryResult], tell: Callable[[RunEvent], None]) -> None:
    for item, result in zip(ready, results, strict=True):
        table = memory_table(item.query) if item.query.output.format == "memory" and result.batches else None
        if table is not None:
            tell(table)
