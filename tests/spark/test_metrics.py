"""The metrics and the health of a real run, over HTTP."""

from __future__ import annotations

import json
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.services.prometheus_server import Prometheus, started_prometheus
from tests.spark.conftest import LONGEST_WAIT_SECONDS, order_rows, shop_project

TRIGGERED = "{{ config(sink='lake', trigger='1 second') }}\n"
COUNTS = (
    "{{ config(sink='nowhere', output_mode='append', trigger='1 second') }}\n"
    "select /*+ WATERMARK(ts, '1 minute') */ window(ts, '1 minute') as w, count(*) as n\n"
    "from {{ source('shop', 'orders') }} group by window(ts, '1 minute')\n"
)
FAILING = "select raise_error('planted') as x, id from {{ source('shop', 'orders') }}\n"


@dataclass(frozen=True)
class MonitoredRun:
    """A run with three queries, one of which fails for good, and the address of its endpoint."""

    url: str

    def get(self, path: str) -> tuple[int, str]:
        """Returns the status and the body of an answer."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=LONGEST_WAIT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def values(self) -> dict[tuple[str, str | None], float]:
        """Returns the values of the metrics by name and model; with several samples, the greatest."""
        found: dict[tuple[str, str | None], float] = {}
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                key = (sample.name, sample.labels.get("model"))
                found[key] = max(sample.value, found.get(key, sample.value))
        return found


@pytest.fixture(scope="module")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MonitoredRun]:
    """A run that goes on until the tests of this module end."""
    folder = shop_project(tmp_path_factory.mktemp("monitored"))
    folder.write(
        {
            "models/orders.sql": f"{TRIGGERED}select id, amount from {{{{ source('shop', 'orders') }}}}\n",
            "models/counts.sql": COUNTS,
            "models/failing.sql": "{{ config(sink='nowhere') }}\n" + FAILING,
        }
    )
    for number in range(3):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    process = folder.command("run", "--metrics-port", "0", "--log-format", "json")
    assert process.stdout is not None
    url, printed = None, []
    for line in process.stdout:
        printed.append(line)
        event = json.loads(line) if line.startswith("{") else {}
        found = re.search(r"http://127\.0\.0\.1:\d+(?=/metrics)", event.get("text", ""))
        url = found.group() if found else url
        if event.get("event") == "query_ended":
            break
    assert url is not None, "".join(printed)
    yield MonitoredRun(url)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LONGEST_WAIT_SECONDS)


@pytest.mark.slow
def test_a_run_exports_its_queries(monitored: MonitoredRun) -> None:
    """The endpoint has rows, batches, watermarks and state as the queries reach them, and the failure."""
    left = ("sqlstream_source_lag_files", "counts")
    while (values := monitored.values()).get(("sqlstream_batches_total", "counts"), 0) < 4 or values.get(left) != 0:
        pass
    assert values["sqlstream_rows_in_total", "counts"] == 15
    assert values["sqlstream_batch_duration_seconds_count", "counts"] >= 4
    assert values["sqlstream_batch_part_seconds_total", "counts"] > 0
    assert values["sqlstream_state_rows", "counts"] > 0
    assert values["sqlstream_state_memory_bytes", "counts"] > 0
    assert values["sqlstream_watermark_timestamp_seconds", "counts"] > 0
    assert values["sqlstream_watermark_lag_seconds", "counts"] == 60
    assert values["sqlstream_source_rows_total", "counts"] == 15
    assert values["sqlstream_failures_total", "failing"] == 1
    assert values["sqlstream_restarts_total", "failing"] == 0
    assert ("sqlstream_state_rows", "orders") not in values


@pytest.fixture
def prometheus(monitored: MonitoredRun, tmp_path: Path) -> Iterator[Prometheus]:
    """A Prometheus that reads the metrics of the run every second."""
    yield from started_prometheus(monitored.url, tmp_path)


def test_prometheus_answers_every_expression_of_the_dashboard(monitored: MonitoredRun, prometheus: Prometheus) -> None:
    """A real Prometheus finds no mistake in the metrics, and answers each expression of the dashboard with data, except
    for those of Kafka and Delta Lake.
    """
    assert prometheus.check(monitored.get("/metrics")[1]) == ""
    while len(prometheus.query("count_over_time(sqlstream_batches_total[1h]) >= 3")) < 2:
        pass
    empty = {expression for expression in dashboard_expressions() if not prometheus.query(expression)}
    assert {re.findall(r"sqlstream_\w+", expression)[0] for expression in empty} == {
        "sqlstream_source_lag_records",
        "sqlstream_source_lag_versions",
    }


def dashboard_expressions() -> list[str]:
    """Returns the expressions of the dashboard, with values for Grafana's variables."""
    dashboard = json.loads((Path(__file__).parents[2] / "docs/grafana/sqlstream.json").read_text())
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for name, value in {"$__rate_interval": "1m", "$project": "shop", "$target": ".*", "$model": ".*"}.items():
        expressions = [expression.replace(name, value) for expression in expressions]
    return expressions


def test_a_run_with_a_failed_query_is_live_and_not_ready(monitored: MonitoredRun) -> None:
    """The probes of Kubernetes see a process that works, and a query that has failed for good."""
    status, body = monitored.get("/health/live")
    assert (status, json.loads(body)) == (200, {"live": True, "reasons": []})
    status, body = monitored.get("/health/ready")
    ready = json.loads(body)
    assert status == 503
    assert [reason.split(":")[0] for reason in ready["reasons"]] == ["failing has failed"]
    assert ready["queries"] == {"counts": "running", "failing": "error", "orders": "running"}
