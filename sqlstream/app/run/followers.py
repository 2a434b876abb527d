"""The observers that a run has, from its configuration."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from sqlstream.app.alerts.alerts_sink import Write as WriteAlerts
from sqlstream.app.alerts.evaluation import QueryRules
from sqlstream.app.alerts.run_alerts import RunAlerts, alerting, query_rules
from sqlstream.app.evolve.patches import SchemaPatches
from sqlstream.app.loading.load import Loaded
from sqlstream.app.observe.growth import StateGrowth
from sqlstream.app.observe.health import Heartbeat, liveness, readiness
from sqlstream.app.observe.metrics import RunFacts, RunMetrics
from sqlstream.app.observe.metrics_sink import MetricsSink, Write
from sqlstream.app.observe.observers import Observer, Observers, observing
from sqlstream.app.observe.otel_settings import exports_metrics
from sqlstream.app.observe.stored_journal import StoredJournal
from sqlstream.app.request import RunRequest
from sqlstream.app.run.lag_observer import LagReader, has_unreported_lag
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError
from sqlstream.project.configuration.alerts import AlertKind
from sqlstream.state.runs.events import AlertChanged, WarningEmitted
from sqlstream.state.sources.lag import MeasuredLag
from sqlstream.version import __version__

if TYPE_CHECKING:  # loads pyspark
    from sqlstream.spark.storage.lease import LeaseFiles


@dataclass(frozen=True)
class RunFollowers:
    """What follows a run: its `observers`, the `heartbeat` of the supervisor of its queries, the sink for rows of
    metrics, the alerts, and on a submitted run the journal in the storage.
    """

    observers: Observers
    heartbeat: Heartbeat
    metrics_sink: MetricsSink | None = None
    alerts: RunAlerts | None = None
    stored: StoredJournal | None = None

    def write_journal(self, open_files: Callable[[], LeaseFiles]) -> None:
        """Begins to write the journal of a submitted run to the storage."""
        if self.stored is not None:
            self.stored.start(open_files)

    def continue_alerts(self, report: Callable[[str], None]) -> None:
        """Continues the alerts that earlier submitted runs have left open in the storage. `report` gets a sentence if
        these cannot be read. Call it when no other run of the queries changes them.
        """
        from sqlstream.spark.jvm.gateway import SPARK_ERRORS  # loads pyspark

        if self.alerts is None or self.stored is None:
            return
        try:
            self.alerts.continue_from(self.stored)
        except (OSError, *SPARK_ERRORS) as error:
            problem = str(error).partition("\n")[0]
            report(f"the open alerts of earlier runs cannot be read ({problem}); those of this run are not kept")

    def keep_alerts(self) -> None:
        """Keeps the open alerts of a submitted run in the storage from now on. Call it when it has all locks."""
        if self.alerts is not None:
            self.alerts.keep()

    def writing_metrics(self, write: Write) -> AbstractContextManager[None]:
        """Writes metrics to their sink during the body, if the project declares one."""
        sink = self.metrics_sink
        return nullcontext() if sink is None else sink.writing(write, self.observers.drain)

    def writing_alerts(self, write: WriteAlerts) -> AbstractContextManager[None]:
        """Writes alerts to their sink during the body, if the project declares one."""
        return nullcontext() if self.alerts is None else self.alerts.writing(write, self.observers.drain)


@contextmanager
def following(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    request: RunRequest,
    emit: Callable[[AlertChanged | WarningEmitted], None],
    report: Callable[[str], None],
    keep_lag: Callable[[str, MeasuredLag], bool],
) -> Iterator[RunFollowers]:
    """Starts what follows a run of `models` for the body, and closes it after it. `emit` gets the changes of alerts and
    warnings, `report` sentences for the user, and `keep_lag` the lags of files and Delta Lake, all in any thread.

    Raises: FindingsError, UsageError, if something cannot work.
    """
    heartbeat = Heartbeat()
    observers: list[Observer] = []
    with ExitStack() as stack:
        facts, exports = _facts(loaded), exports_metrics(request.project.env)
        rules = query_rules(loaded.compiled, models)
        reader = stack.enter_context(_reading_lags(loaded, models, rules, report, keep_lag))
        metrics = RunMetrics(facts, reader.lags)
        # before the exporter, which reads them
        observers += [metrics] if exports or request.metrics_port is not None else []
        if exports:
            from sqlstream.app.observe.otel import OtelMetrics  # an extra, which may not be installed

            observers.append(OtelMetrics(facts, metrics, request.project.env, report))
        if request.metrics_port is not None:
            from sqlstream.app.observe.endpoint import serving_metrics  # most runs need none of it

            url = stack.enter_context(
                serving_metrics(
                    request.metrics_host,
                    request.metrics_port,
                    metrics.samples,
                    lambda: liveness(heartbeat.idle_seconds),
                    lambda: readiness(metrics.run),
                )
            )
            report(f"metrics are at {url}, health at /health/live and /health/ready")
        sink = _metrics_sink(loaded, facts, report)
        observers += [sink] if sink is not None else []
        alerts = stack.enter_context(alerting(loaded, rules, request.project.env, emit, report, reader.lags))
        observers += [alerts.observer] if alerts is not None else []
        patches = SchemaPatches(loaded.compiled.project, emit)
        observers += [patches] if patches.is_needed else []
        observers.append(StateGrowth(loaded.compiled, emit))
        started = Observers(observers, report)
        stack.enter_context(observing(started))
        try:
            yield RunFollowers(started, heartbeat, sink, alerts)
        except FindingsError as error:
            if alerts is not None:
                alerts.refuse(error.findings)
            raise


@contextmanager
def _reading_lags(
    loaded: Loaded,
    models: Sequence[CompiledModel],
    rules: Mapping[str, QueryRules],
    report: Callable[[str], None],
    keep: Callable[[str, MeasuredLag], bool],
) -> Iterator[LagReader]:
    """Reads during the body the lags of queries that Spark does not report."""
    counted = [model for model in models if has_unreported_lag(loaded.compiled, model)]
    needed = {
        model.name: rule.unit
        for model in counted
        if (rule := rules[model.name].rules.get(AlertKind.LAG_OVER)) is not None and rule.unit != "records"
    }
    reader = LagReader(loaded, counted, needed, report, keep)
    with reader.reading():
        yield reader


def _metrics_sink(loaded: Loaded, facts: RunFacts, report: Callable[[str], None]) -> MetricsSink | None:
    declared = loaded.compiled.project.target.metrics
    if declared is None:
        return None
    return MetricsSink(declared.sink, declared.interval_seconds, facts, loaded.invocation.id, report)


def _facts(loaded: Loaded) -> RunFacts:
    project = loaded.compiled.project
    return RunFacts(project.name, project.target.name, __version__, datetime.now(UTC))
