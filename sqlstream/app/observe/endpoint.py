"""The HTTP endpoint of a run: metrics for Prometheus, and health for the probes of Kubernetes."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import copy_context
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import accumulate
from typing import Any
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from sqlstream.app.observe.health import Health
from sqlstream.app.observe.metrics_catalog import DURATION_BUCKETS
from sqlstream.app.observe.metrics_catalog import Metric as RunMetric
from sqlstream.app.observe.samples import Histogram, Sample
from sqlstream.errors import UsageError

REQUEST_SECONDS = 10.0
"""How long a client can take to send its request."""

Metrics = Callable[[str], tuple[bytes, str]]
"""Returns the metrics and their content type for the value of an Accept header."""

_BOUNDS = (*(str(bound) for bound in DURATION_BUCKETS), "+Inf")


class Endpoint:
    """Answers `/metrics`, `/health/live` and `/health/ready` in background threads, from its creation until `close`.

    Raises: UsageError if it cannot listen there.
    """

    def __init__(
        self, host: str, port: int, metrics: Metrics, live: Callable[[], Health], ready: Callable[[], Health]
    ) -> None:
        routes = {"/metrics": metrics, "/health/live": _answer(live), "/health/ready": _answer(ready)}
        try:
            self._server = _Server((host, port), routes)
        except (OSError, OverflowError) as error:
            why = (getattr(error, "strerror", None) or str(error)).lower()
            raise UsageError(
                f"cannot listen for --metrics-port on {host} port {port} ({why}); "
                "choose another port, or stop the process that uses it"
            ) from error
        serve = threading.Thread(
            target=copy_context().run, args=(self._server.serve_forever,), name="metrics endpoint", daemon=True
        )
        serve.start()

    @property
    def url(self) -> str:
        """The address of the metrics."""
        host, port = self._server.server_address[:2]
        name = f"[{host!s}]" if ":" in str(host) else host
        return f"http://{name!s}:{port}/metrics"

    def close(self) -> None:
        """Stops answering."""
        self._server.shutdown()
        self._server.server_close()


def _answer(ask: Callable[[], Health]) -> Callable[[str], tuple[HTTPStatus, bytes, str]]:
    def answer(_accept: str) -> tuple[HTTPStatus, bytes, str]:
        health = ask()
        status = HTTPStatus.OK if health.is_well else HTTPStatus.SERVICE_UNAVAILABLE
        return status, json.dumps(health.body).encode() + b"\n", "application/json"

    return answer


class _Server(ThreadingHTTPServer):
    def __init__(self, address: tuple[str, int], routes: dict[str, Callable[[str], tuple[Any, ...]]]) -> None:
        self.routes = routes
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, _Handler)

    def server_bind(self) -> None:
        """Binds without looking up the name of the host, which can take seconds."""
        socketserver.TCPServer.server_bind(self)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignores a client that has gone away."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = REQUEST_SECONDS

    def do_GET(self) -> None:
        """Answers one request."""
        route = self.server.routes.get(urlsplit(self.path).path)
        if route is None:
            known = ", ".join(self.server.routes)
            self._send(HTTPStatus.NOT_FOUND, f"not found; there are {known}\n".encode(), "text/plain; charset=utf-8")
            return
        answer = route(self.headers.get("Accept", ""))
        self._send(*(answer if len(answer) == 3 else (HTTPStatus.OK, *answer)))

    do_HEAD = do_GET  # noqa: N815 - the name in BaseHTTPRequestHandler

    def _send(self, status: HTTPStatus, body: bytes, content_type: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Prints nothing: the lines of a run are about its queries."""


class Heartbeat:
    """The time since the supervisor of the queries last did something. Threads can share it."""

    def __init__(self) -> None:
        self._beat_at: float | None = None

    def beat(self) -> None:
        """Called by the supervisor in each turn of its loop, about ten times a second."""
        self._beat_at = time.monotonic()

    def end(self) -> None:
        """Called when the supervision ends."""
        self._beat_at = None

    @property
    def idle_seconds(self) -> float | None:
        """The seconds since the last beat; None while nothing is supervised."""
        beat_at = self._beat_at
        return None if beat_at is None else time.monotonic() - beat_at


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
