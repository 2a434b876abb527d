"""The dashboard for Grafana uses metrics and labels that runs export."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from sqlstream.app.observe.metrics_catalog import METRICS, Metric
from tests.tools.make_dashboard import make_dashboard

ROOT = Path(__file__).parents[4]
FILE = ROOT / "docs" / "grafana" / "sqlstream.json"

SERIES = re.compile(r"(sqlstream_\w+)(?:\{([^}]*)\})?")
BY_NAME = {name: metric for metric in METRICS for name in (metric.name, f"{metric.name}_bucket")}


def dashboard() -> dict[str, Any]:
    """Returns the dashboard."""
    loaded: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return loaded


def used(expression: str) -> list[tuple[Metric, set[str]]]:
    """Returns the metrics of an expression, and the labels that select their series."""
    return [
        (BY_NAME[name], set(re.findall(r"(\w+)\s*(?:=~|!=|=|!~)", labels or "")))
        for name, labels in SERIES.findall(expression)
    ]


def test_the_file_is_up_to_date() -> None:
    """The dashboard is up to date; otherwise run `python -m tests.tools.make_dashboard`."""
    assert FILE.read_text(encoding="utf-8") == make_dashboard()


def test_every_metric_and_label_exists() -> None:
    """Expressions, legends and groupings name metrics that are exported, with labels that they have."""
    targets = [target for panel in dashboard()["panels"] for target in panel.get("targets", ())]
    assert targets
    for target in targets:
        found = used(target["expr"])
        assert found, target["expr"]
        grouped = re.search(r"by \(([\w, ]+)\)", target["expr"])
        names = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
        names |= set(grouped.group(1).split(", ")) - {"le"} if grouped else set()
        for metric, labels in found:
            assert labels | names <= set(metric.labels), target["expr"]


def test_variables_come_from_exported_labels() -> None:
    """The variables project, target and model list the values of labels."""
    variables = {each["name"]: each for each in dashboard()["templating"]["list"]}
    assert list(variables) == ["datasource", "project", "target", "model"]
    for name in ("project", "target", "model"):
        query = variables[name]["query"]["query"]
        ((metric, labels),) = used(query)
        assert labels | {name} <= set(metric.labels)
        assert query.endswith(f", {name})")


def test_panels_do_not_overlap() -> None:
    """Each panel has its own place."""
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in dashboard()["panels"])
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
