"""Fills the tables of metrics in docs/monitoring.md from the code.

    .venv/bin/python -m tests.tools.make_metrics

A table is between `<!-- metrics -->` and `<!-- end of metrics -->`; everything else is written by hand.
tests/unit/test_documentation.py fails when the page is out of date.
"""

from __future__ import annotations

import re
from pathlib import Path

from sqlstream.app.observe.metrics_catalog import METRICS, QUERY_LABELS, RUN_LABELS, SOURCE_LABELS, Metric
from sqlstream.compiler.own_rows import ALERT_COLUMNS, METRICS_COLUMNS

PAGE = Path(__file__).parents[2] / "docs" / "monitoring.md"


def fill_tables(page: str) -> str:
    """Returns the page with the current tables."""
    page = _fill(_fill(page, "metrics", metrics_table()), "columns", columns_table(METRICS_COLUMNS))
    return _fill(page, "alert columns", columns_table(ALERT_COLUMNS))


def _fill(page: str, name: str, table: str) -> str:
    return re.sub(rf"(?s)(?<=<!-- {name} -->\n).*?(?=<!-- end of {name} -->)", lambda _: table, page)


def metrics_table() -> str:
    """Returns the table, one row for each metric."""
    rows = [f"| `{each.name}` | {each.kind} | {_labels(each)} | {each.description} |" for each in METRICS]
    return "\n".join(["| metric | kind | labels | value |", "| --- | --- | --- | --- |", *rows]) + "\n"


def columns_table(columns: tuple[tuple[str, str, str], ...]) -> str:
    """Returns the table of the columns of rows in a sink."""
    rows = [f"| `{name}` | {type_} | {description} |" for name, type_, description in columns]
    return "\n".join(["| column | type | value |", "| --- | --- | --- |", *rows]) + "\n"


def _labels(metric: Metric) -> str:
    """Returns what the metric belongs to, and its further labels."""
    known = next(each for each in (SOURCE_LABELS, QUERY_LABELS, RUN_LABELS) if metric.labels[: len(each)] == each)
    of = {SOURCE_LABELS: "model, source", QUERY_LABELS: "model", RUN_LABELS: ""}[known]
    return ", ".join(filter(None, [of, *(f"`{name}`" for name in metric.labels[len(known) :])])) or "-"


if __name__ == "__main__":
    PAGE.write_text(fill_tables(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
