"""Formats the metrics of a run for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sqlstream.state.metrics.catalog import DURATION_BUCKETS
from sqlstream.state.metrics.catalog import Metric as RunMetric
from sqlstream.state.metrics.samples import Histogram, Sample

_BOUNDS = (*(str(bound) for bound in DURATION_BUCKETS), "+Inf")


class Exposition:
    """The metrics in the text formats that Prometheus reads, from a separate registry."""

    def __init__(self, samples: Callable[[], Iterable[Sample]]) -> None:
        self._registry = CollectorRegistry()
        self._registry.register(_RunCollector(samples))

    def text(self, accept: str) -> tuple[bytes, str]:
        """Returns the metrics and their content type, in the best format that the header `accept` allows."""
        encode, content_type = choose_encoder(accept)
        return encode(self._registry), content_type


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
