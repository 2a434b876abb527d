"""The fixes of the rules on streams: rewrites in the model's own names, and when a rule has nothing to say."""

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
    """Returns the errors of a project whose one model streams `sql` in append mode."""
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
    """Its keys and its order are those that OVER names."""
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
    """Of what is counted."""
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
def test_newest_first_is_wrong_below_state_only(tmp_path: Path, sql: str, codes: list[str]) -> None:
    """A query without state drops no late rows."""
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
def test_a_missing_watermark_is_placed_upstream_too(tmp_path: Path, view: str, place: str | None) -> None:
    """Where a view hands the event time on as it is, the hint may be in the view as well."""
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


def test_the_watermark_of_a_window_that_a_view_makes_is_placed_where_the_source_is_read(tmp_path: Path) -> None:
    """The window comes from two views upstream, under another name; the time has its name in the source."""
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "clean.sql").write_text(f"-- every order\nselect id, ts as at from {ORDERS} where id > 0")
    (tmp_path / "models" / "hours.sql").write_text("select window(at, '1 hour') as hour from {{ ref('clean') }}")

    (finding,) = errors(tmp_path, "select hour, count(*) as n from {{ ref('hours') }} group by hour")

    assert finding.code == "append-without-watermark"
    assert finding.fix == "add /*+ WATERMARK(ts, '10 minutes') */ after SELECT in models/clean.sql:2"
