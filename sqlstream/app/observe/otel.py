"""Exports the metrics of a run by OTLP, with OpenTelemetry's SDK and its standard environment variables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.metrics import CallbackOptions, Observation
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricExportResult, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource

from sqlstream.app.observe.metrics import Histogram, RunFacts, RunMetrics, Sample
from sqlstream.app.observe.metrics_catalog import BATCH_DURATION, METRICS, Metric
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.figures import DURATION_BUCKETS
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.version import __version__

SAMPLES_SECONDS = 0.5
"""How long the values of one export are reused: the SDK asks for each metric separately."""

SHUTDOWN_MILLISECONDS = 5_000.0


class OtelMetrics:
    """Exports `metrics` until `close`, at the interval of OTEL_METRIC_EXPORT_INTERVAL. Get its events after `metrics`.

    `report` gets a sentence when exports begin to fail.
    """

    name = "the export to OpenTelemetry"

    def __init__(
        self, facts: RunFacts, metrics: RunMetrics, env: Mapping[str, str], report: Callable[[str], None]
    ) -> None:
        self._labels = facts.labels
        self._samples = _ReusedSamples(metrics.samples)
        logging.getLogger("opentelemetry").parent = logging.getLogger("sqlstream")  # not to the terminal
        reader = PeriodicExportingMetricReader(_Exporter(report))
        self._provider = MeterProvider([reader], resource=_resource(env), shutdown_on_exit=False)
        meter = self._provider.get_meter("sqlstream", __version__)
        for metric in METRICS:
            if metric.kind != "histogram":
                make = meter.create_observable_counter if metric.kind == "counter" else meter.create_observable_gauge
                make(metric.otel_name, [self._callback(metric)], metric.unit, metric.description)
        self._duration = meter.create_histogram(
            BATCH_DURATION.otel_name,
            BATCH_DURATION.unit,
            BATCH_DURATION.description,
            explicit_bucket_boundaries_advisory=DURATION_BUCKETS,
        )

    def observe(self, seen: Observed) -> None:
        """Adds the duration of a batch; the SDK asks for all other values."""
        if isinstance(seen.event, BatchProgress):
            labels = dict(zip(BATCH_DURATION.labels, (*self._labels, seen.event.model), strict=True))
            self._duration.record(seen.event.duration_ms / 1000, labels)

    def tick(self, now: Snapshot) -> None:
        """Does nothing."""

    def close(self, last: Snapshot) -> None:
        """Exports the last values, which `metrics` has taken from `last`."""
        del last
        self._samples.forget()
        self._provider.shutdown(SHUTDOWN_MILLISECONDS)

    def _callback(self, metric: Metric) -> Callable[[CallbackOptions], Iterable[Observation]]:
        def observations(_options: CallbackOptions) -> Iterator[Observation]:
            for sample in self._samples.of(metric):
                if not isinstance(sample.value, Histogram):
                    yield Observation(sample.value, dict(zip(metric.labels, sample.labels, strict=True)))

        return observations


class _ReusedSamples:
    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._samples = samples
        self._by_metric: dict[Metric, list[Sample]] = {}
        self._until = 0.0

    def of(self, metric: Metric) -> list[Sample]:
        """Returns the samples of a metric."""
        if time.monotonic() > self._until:
            self._by_metric = {}
            for sample in self._samples():
                self._by_metric.setdefault(sample.metric, []).append(sample)
            self._until = time.monotonic() + SAMPLES_SECONDS
        return self._by_metric.get(metric, [])

    def forget(self) -> None:
        """Makes the next export compute its values again."""
        self._until = 0.0


class _Exporter(OTLPMetricExporter):
    def __init__(self, report: Callable[[str], None]) -> None:
        super().__init__()
        self._report = report
        self._fails = False

    def export(self, *args: Any, **options: Any) -> MetricExportResult:
        """Exports, and reports the first of several failures."""
        result = super().export(*args, **options)
        if result is not MetricExportResult.SUCCESS and not self._fails:
            self._report("metrics cannot be exported to OpenTelemetry; it is tried again, see logs/sqlstream.log")
        self._fails = result is not MetricExportResult.SUCCESS
        return result


def _resource(env: Mapping[str, str]) -> Resource:
    """Returns the resource of the run: `service.name` is sqlstream, unless the environment names another one."""
    is_named = "OTEL_SERVICE_NAME" in env or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({} if is_named else {"service.name": "sqlstream"})
