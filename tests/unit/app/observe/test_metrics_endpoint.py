"""The metrics of a run over HTTP, for Prometheus and for the probes of Kubernetes."""

from __future__ import annotations

import http.client
import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sqlstream.app.observe.endpoint import serving_metrics
from sqlstream.app.observe.health import liveness, readiness
from sqlstream.app.observe.metrics import RunMetrics
from sqlstream.app.observe.metrics_catalog import METRICS, Metric
from sqlstream.app.observe.observers import Snapshot
from sqlstream.errors import UsageError
from sqlstream.state.runs.events import (
    QueriesSelected,
    QueryRestarting,
    QueryResult,
    Status,
)
from sqlstream.state.runs.tracked_run import TrackedRun, follow
from tests.support.run_metrics import EVENTS, FACTS, FAILURE, NOW, QUERIES, STARTED, metrics_after


@pytest.fixture
def served() -> Iterator[tuple[str, RunMetrics]]:
    """The address of an endpoint, and the metrics that it serves."""
    metrics = metrics_after(*EVENTS)
    live, ready = (lambda: liveness(301.0)), (lambda: readiness(metrics.run))
    with serving_metrics("127.0.0.1", 0, metrics.samples, live, ready) as url:
        yield url.removesuffix("/metrics"), metrics


def key(name: str, *labels: str) -> tuple[str, ...]:
    """Returns the key of a value, in any order of its labels."""
    return (name, *sorted(labels))


def get(url: str) -> tuple[int, str]:
    """Returns the status and the body of an answer."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_a_bug_in_the_metrics_of_a_query_hides_no_others() -> None:
    """The samples of the other queries are there if those of one cannot be computed."""
    run = TrackedRun()
    for event in (QueriesSelected(QUERIES), *EVENTS):
        run = follow(run, event, NOW)
    broken = replace(run.queries["orders"], figures=None)  # type: ignore[arg-type]
    metrics = RunMetrics(FACTS, dict)
    metrics.tick(Snapshot(NOW, replace(run, queries={**run.queries, "orders": broken}), 0))

    labels = {label for sample in metrics.samples() for label in sample.labels}
    assert QUERIES[1].model in labels
    assert QUERIES[0].model not in labels


def test_prometheus_reads_every_value(served: tuple[str, RunMetrics]) -> None:
    """The endpoint has the totals of both batches, the newest gauges, and labels with any characters."""
    status, text = get(f"{served[0]}/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    values = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in families.values()
        for sample in family.samples
    }
    orders = ("shop", "local", "orders")
    assert status == 200
    assert values[key("sqlstream_build_info", "shop", "local", "1.2.3", "4.3.0")] == 1
    assert values[key("sqlstream_observer_dropped_batches_total", "shop", "local")] == 2
    assert values[key("sqlstream_query_info", *orders, "stream", "lake", "kafka", "10 seconds")] == 1
    assert values[key("sqlstream_query_status", *orders, "running")] == 1
    assert values[key("sqlstream_query_status", *orders, "error")] == 0
    assert values[key("sqlstream_query_status", "shop", "local", QUERIES[1].model, "pending")] == 1
    assert values[key("sqlstream_batches_total", *orders)] == 2
    assert values[key("sqlstream_rows_in_total", *orders)] == 14
    assert values[key("sqlstream_rows_out_total", *orders)] == 6
    assert values[key("sqlstream_late_rows_total", *orders)] == 2
    assert values[key("sqlstream_restarts_total", *orders)] == 1
    assert values[key("sqlstream_failures_total", *orders)] == 1
    assert values[key("sqlstream_batch_duration_seconds_count", *orders)] == 2
    assert values[key("sqlstream_batch_duration_seconds_sum", *orders)] == 0.6
    assert values[key("sqlstream_batch_duration_seconds_bucket", *orders, "0.25")] == 0
    assert values[key("sqlstream_batch_duration_seconds_bucket", *orders, "0.5")] == 2
    assert values[key("sqlstream_batch_part_seconds_total", *orders, "addBatch")] == 0.5
    assert values[key("sqlstream_watermark_timestamp_seconds", *orders)] == NOW.timestamp()
    assert values[key("sqlstream_watermark_lag_seconds", *orders)] == 600
    assert values[key("sqlstream_state_rows", *orders)] == 9
    assert values[key("sqlstream_state_memory_bytes", *orders)] == 4096
    assert values[key("sqlstream_source_rows_total", *orders, "shop.raw")] == 28
    assert values[key("sqlstream_source_lag_records", *orders, "shop.raw")] == 10
    assert values[key("sqlstream_data_test_rows_total", *orders, "orders.positive", "passed")] == 4
    assert values[key("sqlstream_data_test_rows_total", *orders, "orders.positive", "failed")] == 2
    assert values[key("sqlstream_violations_total", *orders)] == 2
    assert values[key("sqlstream_core_seconds_total", *orders)] == 1.2
    assert values[key("sqlstream_tasks_total", *orders)] == 8
    assert values[key("sqlstream_cores", *orders)] == 2


def test_readiness_follows_the_queries(served: tuple[str, RunMetrics]) -> None:
    """A run is ready once every query has started, and no longer after one has failed for good."""
    status, text = get(f"{served[0]}/health/ready")
    assert status == 503
    assert json.loads(text)["reasons"] == [f"{QUERIES[1].model} has not started"]
    assert json.loads(text)["queries"]["orders"] == "running"
    assert not readiness(TrackedRun()).is_well

    only = QueriesSelected(QUERIES[:1])
    run = follow(follow(TrackedRun(), only, NOW), STARTED, NOW)
    assert readiness(run).is_well
    assert readiness(follow(run, QueryRestarting("orders", 1, 5, 1.0, FAILURE), NOW)).is_well
    failed = QueryResult("orders", "id", 1, 1, Status.ERROR, 1, 1, 1, 1.0, None, None, FAILURE)
    assert readiness(follow(run, failed, NOW)).body["reasons"] == ["orders has failed: the broker is away"]
    ended = QueryResult("orders", "id", 1, 1, Status.SUCCESS, 1, 1, 1, 1.0, None, None)
    assert readiness(follow(run, ended, NOW)).is_well


def test_a_supervisor_that_hangs_is_not_live(served: tuple[str, RunMetrics]) -> None:
    """A run whose supervisor does not turn is not live; one that has not started its queries is."""
    status, text = get(f"{served[0]}/health/live")
    assert (status, json.loads(text)["live"]) == (503, False)
    assert liveness(None).is_well
    assert liveness(1.0).is_well


def test_other_paths_are_not_found(served: tuple[str, RunMetrics]) -> None:
    """An unknown path answers 404 and names the known ones; only reading is allowed."""
    status, text = get(f"{served[0]}/")
    assert status == 404
    assert "/health/ready" in text
    with pytest.raises(urllib.error.HTTPError, match="405"):
        urllib.request.urlopen(f"{served[0]}/metrics", data=b"", timeout=30)


@pytest.mark.parametrize("path", ["/metrics", "/health/live", "/nothing"])
def test_answers_are_not_stored_and_a_head_has_no_body(served: tuple[str, RunMetrics], path: str) -> None:
    """Each answer says that it must not be cached. A HEAD request gets the headers only."""
    connection = http.client.HTTPConnection(served[0].removeprefix("http://"), timeout=30)
    connection.request("HEAD", path)
    head = connection.getresponse()
    assert (head.getheader("Cache-Control"), head.read()) == ("no-store", b"")
    connection.request("GET", path)
    assert connection.getresponse().read() != b""
    connection.close()


def test_clients_that_send_nothing_hold_up_nobody(served: tuple[str, RunMetrics]) -> None:
    """Open connections without a request, and half of a request, do not keep a probe from its answer."""
    address = ("127.0.0.1", int(served[0].rpartition(":")[2]))
    with ExitStack() as stack:
        for _ in range(100):
            stack.enter_context(socket.create_connection(address)).sendall(b"GET /metr")
        assert get(f"{served[0]}/health/ready")[0] == 503


def test_a_port_in_use_is_a_usage_error() -> None:
    """A port that another process uses is refused with the option's name, and so is an unknown host."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(UsageError, match=f"--metrics-port on 127.0.0.1 port {port}.*in use"):
            serve_nothing("127.0.0.1", port)
    with pytest.raises(UsageError, match="--metrics-port on nowhere"):
        serve_nothing("nowhere.invalid", 0)


def serve_nothing(host: str, port: int) -> None:
    """Opens and closes an endpoint without metrics."""
    with serving_metrics(host, port, tuple, lambda: liveness(None), lambda: liveness(None)):
        pass


def test_an_address_of_ipv6() -> None:
    """An IPv6 address stands in brackets in the URL, and answers."""
    with serving_metrics("::1", 0, tuple, lambda: liveness(None), lambda: liveness(None)) as url:
        assert url.startswith("http://[::1]:")
        assert get(url) == (200, "")


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.name)
def test_names_follow_prometheus(metric: Metric) -> None:
    """Names follow Prometheus' conventions, as `promtool check metrics` does: base units, and `_total` for counters
    only.
    """
    assert re.fullmatch(r"sqlstream_[a-z]+(_[a-z]+)*", metric.name)
    assert metric.name.endswith("_total") == (metric.kind == "counter")
    assert not re.search(r"_(ms|milliseconds|minutes|kilobytes|mb|count|sum|bucket|gauge|counter)$", metric.name)
    assert metric.description.endswith(".")
    assert all(re.fullmatch(r"[a-z_]+", label) for label in metric.labels)
