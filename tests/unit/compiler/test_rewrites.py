"""Fixes of the streaming rules: rewrites that use the model's own names, and queries that need no fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import Finding, FindingsError, ProjectRequest, compile_models

ORDERS = "{{ source('shop', 'orders') }}"
FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, ts timestamp, amount double'}
      - name: backlog
        format: json
        path: in
        schema: id int, ts timestamp
        watermark: {column: ts, delay: 1 minute}
        options: {latestFirst: true}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
}


def errors(root: Path, sql: str) -> list[Finding]:
    """Returns the errors of a project whose only model streams `sql` in append mode."""
    for name, text in {**FILES, "models/asked.sql": "{{ config(sink='out') }}\n" + sql}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    try:
        compile_models(ProjectRequest(root))
    except FindingsError as error:
        return [finding for finding in error.findings if finding.is_error]
    return []


@pytest.mark.parametrize(
    ("expression", "rewrite"),
    [
        ("row_number() over (partition by id order by ts desc)", "max_by(struct(*), ts) as latest ... group by id"),
        ("rank() over (partition by id, amount order by ts)", "min_by(struct(*), ts) as first ... group by id, amount"),
        ("row_number() over (order by ts)", "min_by(struct(*), ts) as first ... without GROUP BY"),
        ("sum(amount) over (partition by id order by ts)", "SUM(amount) ... group by window(ts, '1 hour'), id"),
        (
            "lag(amount) over (partition by id order by ts)",
            "array_sort(collect_list(struct(ts, *))) ... group by window",
        ),
    ],
)
def test_a_function_with_over_becomes_an_aggregation(tmp_path: Path, expression: str, rewrite: str) -> None:
    """The fix for a window function aggregates by the partition keys and uses the order of OVER."""
    (finding,) = errors(tmp_path, f"select id, {expression} as x from {ORDERS}")

    assert finding.code == "window-function"
    assert rewrite.lower() in finding.fix.lower()


@pytest.mark.parametrize(
    ("expression", "rewrite"),
    [
        ("count(distinct id)", "approx_count_distinct(id), or for few values size(collect_set(id))"),
        ("count(distinct id, amount)", "approx_count_distinct(struct(id, amount))"),
        ("sum(distinct amount)", "collect_set(amount)"),
    ],
)
def test_distinct_becomes_a_set(tmp_path: Path, expression: str, rewrite: str) -> None:
    """The fix for a DISTINCT aggregate uses a set or an approximate count of the same arguments."""
    sql = (
        f"select {expression} as n from {ORDERS} watermark ts delay of interval 1 minute group by window(ts, '1 hour')"
    )

    (finding,) = errors(tmp_path, sql)

    assert finding.code == "distinct-aggregate"
    assert rewrite in finding.fix


@pytest.mark.parametrize(
    ("sql", "codes"),
    [
        ("select id from {{ source('shop', 'backlog') }}", []),
        (
            "select window(ts, '1 hour') as w, count(*) as n from {{ source('shop', 'backlog') }} group by 1",
            ["latest-first"],
        ),
    ],
)
def test_latest_first_is_an_error_for_stateful_queries_only(tmp_path: Path, sql: str, codes: list[str]) -> None:
    """`latestFirst` is an error only for a stateful query, because a stateless query drops no late rows."""
    assert [finding.code for finding in errors(tmp_path, sql)] == codes


@pytest.mark.parametrize(
    ("view", "place"),
    [
        ("-- every order\nselect id, ts\nfrom {orders} where id > 0", "models/clean.sql:2"),
        ("with a as (select id from {orders})\nselect id, ts from {orders}", None),
        ("select id, ts + interval 1 day as ts from {orders}", None),
        ("select id, ts as at, ts from {orders}", "models/clean.sql:1"),
    ],
)
def test_a_missing_watermark_may_be_added_upstream(tmp_path: Path, view: str, place: str | None) -> None:
    """If a view passes the event time on unchanged, the fix also offers a hint in the view."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "clean.sql").write_text(view.format(orders=ORDERS))

    (finding,) = errors(
        tmp_path,
        "select window(ts, '1 hour') as w, count(*) as n from {{ ref('clean') }} group by window(ts, '1 hour')",
    )

    hint = "add /*+ WATERMARK(ts, '10 minutes') */ after SELECT"
    upstream = f"; or {hint} in {place}, for every query that reads it" if place else ""
    assert finding.code == "append-without-watermark"
    assert finding.fix.startswith(hint)
    assert finding.fix.endswith(upstream)
    assert ("for every query" in finding.fix) == bool(place)


def test_a_missing_watermark_of_an_upstream_window_is_added_at_the_source(tmp_path: Path) -> None:
    """The fix for a window made by a view puts the hint where the source is read, with the source's column name."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "clean.sql").write_text(f"-- every order\nselect id, ts as at from {ORDERS} where id > 0")
    (tmp_path / "models" / "hours.sql").write_text("select window(at, '1 hour') as hour from {{ ref('clean') }}")

    (finding,) = errors(tmp_path, "select hour, count(*) as n from {{ ref('hours') }} group by hour")

    assert finding.code == "append-without-watermark"
    assert finding.fix == "add /*+ WATERMARK(ts, '10 minutes') */ after SELECT in models/clean.sql:2"
