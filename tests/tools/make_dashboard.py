"""Writes docs/grafana/sqlstream.json, the dashboard for Grafana.

    .venv/bin/python -m tests.tools.make_dashboard

tests/unit/app/observe/test_dashboard.py checks that it only uses metrics and labels that exist, and
tests/spark/test_metrics.py runs every expression in a real Prometheus.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[2] / "docs" / "grafana" / "sqlstream.json"

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
FILTER = 'project=~"$project", target=~"$target", model=~"$model"'
WIDTH, HEIGHT = 12, 8


@dataclass(frozen=True)
class Panel:
    """A panel: its title, its unit in Grafana, its expressions with their legends, and its kind."""

    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    kind: str = "timeseries"
    is_stacked: bool = False


def _one(title: str, unit: str, expression: str, legend: str = "{{model}}", **more: Any) -> Panel:
    return Panel(title, unit, ((expression.replace("FILTER", FILTER), legend),), **more)


_QUANTILE = (
    "histogram_quantile({}, sum by (model, le) (rate(sqlstream_batch_duration_seconds_bucket{{{}}}[$__rate_interval])))"
)

ROWS: dict[str, tuple[Panel, ...]] = {
    "Overview": (
        _one(
            "Queries by status", "none", "sum by (status) (sqlstream_query_status{FILTER})", "{{status}}", kind="stat"
        ),
        _one("Queries that emit no rows", "none", "sum by (model) (sqlstream_query_silent{FILTER})", kind="stat"),
    ),
    "Throughput": (
        _one("Rows in", "rowsps", "rate(sqlstream_rows_in_total{FILTER}[$__rate_interval])"),
        _one("Rows out", "rowsps", "rate(sqlstream_rows_out_total{FILTER}[$__rate_interval])"),
        _one(
            "Rows by source",
            "rowsps",
            "rate(sqlstream_source_rows_total{FILTER}[$__rate_interval])",
            "{{model}} {{source}}",
        ),
        Panel(
            "Rows per second, arriving and processed",
            "rowsps",
            (
                (f"sqlstream_input_rows_per_second{{{FILTER}}}", "{{model}} arriving"),
                (f"sqlstream_processed_rows_per_second{{{FILTER}}}", "{{model}} processed"),
            ),
        ),
    ),
    "Latency": (
        Panel(
            "Duration of batches",
            "s",
            (
                (_QUANTILE.format("0.5", FILTER), "{{model}} median"),
                (_QUANTILE.format("0.95", FILTER), "{{model}} 95 %"),
            ),
        ),
        _one(
            "Parts of batches, per second",
            "s",
            'sum by (part) (rate(sqlstream_batch_part_seconds_total{FILTER, part!="triggerExecution"}[$__rate_interval]))',
            "{{part}}",
            is_stacked=True,
        ),
        _one("Batches", "ops", "rate(sqlstream_batches_total{FILTER}[$__rate_interval])"),
        _one("Time since the last batch started", "s", "time() - sqlstream_last_batch_timestamp_seconds{FILTER}"),
    ),
    "Lag": (
        _one("Watermark behind the newest event", "s", "sqlstream_watermark_lag_seconds{FILTER}"),
        _one("Watermark behind the clock", "s", "time() - sqlstream_watermark_timestamp_seconds{FILTER}"),
        _one("Newest event behind the clock", "s", "time() - sqlstream_newest_event_timestamp_seconds{FILTER}"),
        Panel(
            "Lag",
            "none",
            (
                (f"sqlstream_source_lag_records{{{FILTER}}}", "{{model}} {{source}} records"),
                (f"sqlstream_source_lag_files{{{FILTER}}}", "{{model}} {{source}} files"),
                (f"sqlstream_source_lag_versions{{{FILTER}}}", "{{model}} {{source}} versions"),
            ),
        ),
    ),
    "State": (
        _one("Rows", "short", "sqlstream_state_rows{FILTER}"),
        _one("Memory", "bytes", "sqlstream_state_memory_bytes{FILTER}"),
        _one("Late rows", "rowsps", "rate(sqlstream_late_rows_total{FILTER}[$__rate_interval])"),
        _one("Corrupt records dropped", "rowsps", "rate(sqlstream_dropped_records_total{FILTER}[$__rate_interval])"),
    ),
    "Failures": (
        _one("Failures", "none", "increase(sqlstream_failures_total{FILTER}[$__rate_interval])"),
        _one("Restarts", "none", "increase(sqlstream_restarts_total{FILTER}[$__rate_interval])"),
    ),
}
"""The panels by row."""


def make_dashboard() -> str:
    """Returns the dashboard as JSON."""
    panels: list[dict[str, Any]] = []
    top = 0
    for title, row in ROWS.items():
        place = {"h": 1, "w": 2 * WIDTH, "x": 0, "y": top}
        panels.append({"type": "row", "title": title, "collapsed": False, "panels": [], "gridPos": place})
        for index, panel in enumerate(row):
            place = {"h": HEIGHT, "w": WIDTH, "x": WIDTH * (index % 2), "y": top + 1 + HEIGHT * (index // 2)}
            panels.append(_panel(panel, place))
        top += 1 + HEIGHT * ((len(row) + 1) // 2)
    dashboard = {
        "title": "sqlstream",
        "uid": "sqlstream",
        "tags": ["sqlstream"],
        "schemaVersion": 39,
        "editable": True,
        "time": {"from": "now-1h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables()},
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }
    return json.dumps(dashboard, indent=2) + "\n"


def _variables() -> list[dict[str, Any]]:
    source = {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source"}
    above = {
        "project": "sqlstream_build_info",
        "target": 'sqlstream_build_info{project=~"$project"}',
        "model": 'sqlstream_query_info{project=~"$project", target=~"$target"}',
    }
    return [source, *(_variable(name, f"label_values({metric}, {name})") for name, metric in above.items())]


def _variable(name: str, query: str) -> dict[str, Any]:
    return {
        "name": name,
        "label": name.capitalize(),
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(panel: Panel, place: dict[str, int]) -> dict[str, Any]:
    stacking = {"custom": {"stacking": {"mode": "normal"}, "fillOpacity": 30}} if panel.is_stacked else {}
    return {
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {"defaults": {"unit": panel.unit, **stacking}, "overrides": []},
        "targets": [
            {"refId": "ABC"[index], "datasource": SOURCE, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(panel.queries)
        ],
    }


if __name__ == "__main__":
    FILE.parent.mkdir(exist_ok=True)
    FILE.write_text(make_dashboard(), encoding="utf-8")
