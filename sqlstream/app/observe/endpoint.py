"""The HTTP endpoint of a run: metrics for Prometheus, and health for the probes of Kubernetes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sqlstream.app.observe.health import Health
from sqlstream.app.observe.metrics import Histogram, Sample
from sqlstream.app.observe.metrics_catalog import Metric as RunMetric
from sqlstream.errors import UsageError
from sqlstream.figures import DURATION_BUCKETS
from sqlstream.web.server.http import AddressError, Answer, BackgroundServer, bind, make_endpoint

_BOUNDS = (*(str(bound) for bound in DURATION_BUCKETS), "+Inf")


@contextmanager
def serving_metrics(
    host: str,
    port: int,
    samples: Callable[[], Iterable[Sample]],
    live: Callable[[], Health],
    ready: Callable[[], Health],
) -> Iterator[str]:
    """Answers `/metrics`, `/health/live` and `/health/ready` in background threads during the body, and yields the
    address of the metrics.

    Raises: UsageError if it cannot listen there.
    """
    try:
        listening = bind(host, port)
    except AddressError as error:
        raise UsageError(
            f"cannot listen for --metrics-port on {host} port {port} ({str(error).lower()}); "
            "choose another port, or stop the process that uses it"
        ) from error
    text = Exposition(samples).text
    app = make_endpoint({"/metrics": text, "/health/live": _answer(live), "/health/ready": _answer(ready)})
    server = BackgroundServer(app, listening, host, "metrics endpoint")
    server.start()
    try:
        yield f"{server.url}/metrics"
    finally:
        server.close()


def _answer(ask: Callable[[], Health]) -> Callable[[str], Answer]:
    def answer(_accept: str) -> Answer:
        health = ask()
        status = HTTPStatus.OK if health.is_well else HTTPStatus.SERVICE_UNAVAILABLE
        return status, json.dumps(health.body).encode() + b"\n", "application/json"

    return answer


class Exposition:
    """The metrics in the text formats that Prometheus reads, from a separate registry."""

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_RunCollector(samples))

    def text(self, accept: str) -> Answer:
        """Returns the metrics in the best format that the header `accept` allows."""
        encode, content_type = choose_encoder(accept)
        return HTTPStatus.OK, encode(self._registry), content_type


class _RunCollector(Collector):
    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._samples = samples

    def collect(self) -> Iterator[Metric]:
        """Yields each metric with its samples."""
        by_metric: dict[RunMetric, list[Sample]] = {}
        for sample in self._samples():
            by_metric.setdefault(sample.metric, []).append(sample)
        for metric, samples in by_metric.items():
            yield _family(metric, samples)


def _family(metric: RunMetric, samples: Sequence[Sample]) -> Metric:
    if metric.kind == "histogram":
        return _histogram(metric, samples)
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    family = make(metric.name, metric.description, labels=metric.labels)
    for sample in samples:
        if not isinstance(sample.value, Histogram):
            family.add_metric(sample.labels, sample.value)
    return family


def _histogram(metric: RunMetric, samples: Sequence[Sample]) -> Metric:
    family = HistogramMetricFamily(metric.name, metric.description, labels=metric.labels)
    for sample in samples:
        if isinstance(sample.value, Histogram):
            counts = accumulate(sample.value.buckets)
            family.add_metric(sample.labels, list(zip(_BOUNDS, counts, strict=True)), sample.value.total)
    return family
