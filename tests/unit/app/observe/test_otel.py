"""The export of metrics by OTLP, to a real receiver on loopback."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from sqlstream.app.observe.metrics_catalog import METRICS
from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.app.observe.otel import OtelMetrics
from sqlstream.app.observe.otel_settings import exports_metrics
from sqlstream.errors import FindingsError
from sqlstream.state.runs.tracked_run import TrackedRun
from tests.support.run_metrics import EVENTS, FACTS, NOW, QUERIES, metrics_after

LAST = Snapshot(NOW, TrackedRun(), 0)


class Receiver(ThreadingHTTPServer):
    """An OTLP receiver that decodes the requests; it answers with `status`."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.requests: list[ExportMetricsServiceRequest] = []
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        """Decodes a request."""
        assert self.path == "/v1/metrics"
        request = ExportMetricsServiceRequest()
        request.ParseFromString(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Prints nothing."""


@pytest.fixture
def receiver(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver, which the environment names."""
    server = Receiver(getattr(request, "param", 200))
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "3600000")
    yield server
    server.shutdown()
    server.server_close()


def test_every_value_arrives(receiver: Receiver) -> None:
    """The receiver gets all metrics under OpenTelemetry's names, with units, labels and the service."""
    exported = OtelMetrics(FACTS, metrics_after(*EVENTS), {}, pytest.fail)
    for event in EVENTS:
        exported.observe(Observed(NOW, event, None))
    exported.close(LAST)

    (resource,) = receiver.requests[-1].resource_metrics
    attributes = {item.key: item.value.string_value for item in resource.resource.attributes}
    assert attributes["service.name"] == "sqlstream"
    metrics = {metric.name: metric for scope in resource.scope_metrics for metric in scope.metrics}
    rows = metrics["sqlstream.rows_in"]
    orders = next(point for point in rows.sum.data_points if label(point, "model") == "orders")
    assert rows.sum.is_monotonic
    assert (orders.as_int, label(orders, "project"), label(orders, "target")) == (14, "shop", "local")
    assert metrics["sqlstream.state_memory"].unit == "By"
    (duration,) = metrics["sqlstream.batch_duration"].histogram.data_points
    assert (metrics["sqlstream.batch_duration"].unit, duration.count, duration.sum) == ("s", 2, 0.6)
    running = [
        label(point, "model")
        for point in metrics["sqlstream.query_status"].gauge.data_points
        if label(point, "status") == "running" and point.as_int == 1
    ]
    assert running == ["orders"]
    left_out = {f"sqlstream.source_lag{unit}" for unit in ("", "_files", "_versions")}  # they are not of Kafka
    left_out.add("sqlstream.alert_active")  # no alert was raised
    assert {each.otel_name for each in METRICS} - metrics.keys() == left_out


@pytest.mark.parametrize("receiver", [400], indirect=True)
def test_an_export_that_fails_is_reported(receiver: Receiver) -> None:
    """A receiver that refuses the metrics gives one message."""
    reports: list[str] = []
    OtelMetrics(FACTS, metrics_after(), {}, reports.append).close(LAST)
    assert receiver.requests
    assert reports == ["metrics cannot be exported to OpenTelemetry; it is tried again, see logs/sqlstream.log"]


def test_opentelemetry_variables_turn_the_export_on() -> None:
    """An endpoint or OTEL_METRICS_EXPORTER turns the export on; none, another exporter, or the SDK's switch, off."""
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}
    assert exports_metrics(endpoint)
    assert exports_metrics({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://localhost:4318"})
    assert exports_metrics({"OTEL_METRICS_EXPORTER": "console,otlp"})
    assert not exports_metrics({})
    assert not exports_metrics({**endpoint, "OTEL_METRICS_EXPORTER": "none"})
    assert not exports_metrics({**endpoint, "OTEL_SDK_DISABLED": "True"})


def test_an_export_that_cannot_work_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the SDK, or with a protocol that sqlstream does not have, the run does not start."""
    endpoint = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}
    with pytest.raises(FindingsError) as caught:
        exports_metrics({**endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    assert "http/protobuf" in caught.value.findings[0].fix
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk", None)
    with pytest.raises(FindingsError) as caught:
        exports_metrics(endpoint)
    assert caught.value.findings[0].code == "missing-package"
    assert "sqlstream[otel]" in caught.value.findings[0].fix


def label(point: Any, name: str) -> str:
    """Returns the value of a label of a data point."""
    return next(str(item.value.string_value) for item in point.attributes if item.key == name)


def test_labels_have_any_characters(receiver: Receiver) -> None:
    """Names of models arrive as they are."""
    OtelMetrics(FACTS, metrics_after(*EVENTS), {}, pytest.fail).close(LAST)
    assert QUERIES[1].model.encode() in receiver.requests[-1].SerializeToString()
