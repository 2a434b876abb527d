"""The part of a run that needs Spark: every query made ready, its ledger written, then all started and watched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime

from sqlstream.app.loading import Loaded
from sqlstream.app.ready import Checks, Ready, check_all, storage_location
from sqlstream.app.request import RunRequest
from sqlstream.app.session import check_java, check_target, start_session
from sqlstream.app.signals import StopSignals
from sqlstream.app.small_runs import is_small
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError
from sqlstream.project.on_corrupt import declared_sources
from sqlstream.spark.memory import memory_table
from sqlstream.spark.runner import Runner
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.session import BRIEF_JVM, ENDING_JVM, LASTING_JVM, SparkRuntime, stop_spark
from sqlstream.spark.storage import storage_problems, write_ledger
from sqlstream.state.events import Notice, ProjectFound, QueryResult, RunEvent
from sqlstream.state.ledger import Ledger
from sqlstream.state.limits import Limits
from sqlstream.state.plan import Action
from sqlstream.version import __version__


def run_queries(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: RunRequest,
    tell: Callable[[RunEvent], None],
    signals: StopSignals,
) -> tuple[QueryResult, ...]:
    """Runs `models` in one Spark session and returns their results.

    Raises: FindingsError and StopAskedError, both with nothing started.
    """
    check_target(loaded)
    check_java(request.project.env, signals)
    secrets = Secrets(request.project.env)
    purpose = _purpose(loaded, models)
    with ExitStack() as held:  # which outlives Spark: until then a query may be writing
        runtime = start_session(loaded, secrets, purpose=purpose, console_to_stderr=request.console_to_stderr)
        try:
            signals.install()
            tell(_found(loaded, runtime))
            checks = Checks(loaded, request, runtime, secrets, held)
            ready = check_all(checks, models, signals)
            return _run_ready(checks, ready, tell, signals)
        finally:
            stop_spark(runtime)


def _purpose(loaded: Loaded, models: Sequence[CompiledModel]) -> str:
    """What the JVM is for."""
    if is_small(loaded.compiled, models):
        return BRIEF_JVM
    return ENDING_JVM if all(model.ends for model in models) else LASTING_JVM


def _run_ready(
    checks: Checks, ready: Sequence[Ready], tell: Callable[[RunEvent], None], signals: StopSignals
) -> tuple[QueryResult, ...]:
    for item in ready:
        _tell_unusual(item, tell)
    orders = [item.order(checks) for item in ready]
    signals.check()
    _for_all(ready, checks, Ready.hold)
    _for_all(ready, checks, _write_ledger)
    runner = Runner(checks.secrets, tell, _limits(checks))
    with signals.passed_to(runner.request_stop):
        results = runner.run(orders)
    _show_memory(ready, results, tell)
    return results


def _for_all(ready: Sequence[Ready], checks: Checks, step: Callable[[Ready, Checks], None]) -> None:
    """Takes one step with every query. Raises: FindingsError with the findings of all of them."""
    findings: list[Finding] = []
    for item in ready:
        try:
            with storage_problems(item.root, storage_location(checks.loaded, item.query.model), checks.secrets):
                step(item, checks)
        except FindingsError as error:
            findings += error.findings
    if findings:
        raise FindingsError(findings)


def _limits(checks: Checks) -> Limits:
    """The limits that were asked for, or else the target's."""
    limits = checks.request.limits
    return replace(limits, threads=limits.threads or checks.loaded.compiled.project.target.threads)


def _found(loaded: Loaded, runtime: SparkRuntime) -> ProjectFound:
    project, models = loaded.compiled.project, loaded.compiled.models
    return ProjectFound(
        models=len(models),
        sources=len(declared_sources(project.sources)),
        sinks=len(project.sinks),
        seeds=len(project.seeds),
        sqlstream_version=__version__,
        spark_version=runtime.version,
    )


def _write_ledger(ready: Ready, checks: Checks) -> None:
    if ready.plan.writes_ledger:
        write_ledger(ready.storage, ready.root, _ledger(ready, ready.output(checks), checks.runtime))


def _tell_unusual(ready: Ready, tell: Callable[[RunEvent], None]) -> None:
    """Says what is unusual about how a query starts."""
    model, plan = ready.query.model, ready.plan
    if plan.action is Action.FRESH_EACH_RUN:
        why = ready.query.unrestartable
        tell(Notice(f"{model.name}: starts with a fresh checkpoint on every run, because {why}"))
    if plan.action is Action.REFRESH:
        old = f"version {ready.state.version} of its checkpoint and output stay where they are"
        tell(Notice(f"{model.name}: starts over as version {plan.version}; {old}"))
    if plan.changes:
        tell(Notice(f"{model.name}: goes on with its checkpoint although {'; '.join(plan.changes)}"))


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
        retired=_retired(ready),
    )


def _retired(ready: Ready) -> tuple[str, ...]:
    """The names of the readers that the checkpoint knows and the query has no more."""
    old = ready.state.ledger
    if old is None or ready.plan.action is not Action.RESUME:
        return ()
    names = {*old.retired, *(use.name for use in old.identity.sources)}
    return tuple(sorted(names - {use.name for use in ready.query.identity.sources}))


def _show_memory(ready: Sequence[Ready], results: Sequence[QueryResult], tell: Callable[[RunEvent], None]) -> None:
    for item, result in zip(ready, results, strict=True):
        table = memory_table(item.query) if item.query.output.format == "memory" and result.batches else None
        if table is not None:
            tell(table)
