"""Texts of findings that depend on the query."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.errors import Finding

FILES = {
    "project.yml": "name: shop\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - {name: orders, format: json, path: in, schema: 'id int, made date, ts timestamp, amount double'}
      - name: marked
        format: json
        path: in
        schema: 'loaded_at timestamp, ts timestamp, id int'
        watermark: {column: ts, delay: 10 minutes}
      - {name: zones, format: json, path: in, mode: batch, schema: 'id int, name string'}
""",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
}
ORDERS = "{{ source('shop', 'orders') }}"
MARKED = "{{ source('shop', 'marked') }}"
ZONES = "{{ source('shop', 'zones') }}"


def finding(root: Path, code: str, sql: str, mode: str = "append", **models: str) -> Finding:
    """Returns the only finding of the query with this code."""
    asked = {"models/asked.sql": f"{{{{ config(sink='out', output_mode='{mode}') }}}}\n{sql}"}
    for name, text in {**FILES, **asked, **{f"models/{key}.sql": text for key, text in models.items()}}.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8", errors="surrogatepass")
    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(root))
    (found,) = [item for item in raised.value.findings if item.code == code]
    return found


FIRST = "select min_by(struct(*), ts) as first"


@pytest.mark.parametrize(
    ("sql", "why", "fix"),
    [
        (
            f"select id from {ORDERS} o join {MARKED} m on o.id = m.id",
            "`o` and `m` have a column with that name",
            "write, for example, `o.id`",
        ),
        (
            f"select id from {ORDERS} o join (select id from {MARKED}) on true",
            "`o` and a relation without an alias have a column with that name",
            "write, for example, `o.id`",
        ),
        (
            f"select id from (select id, amount as id from {ORDERS}) o",
            "`o` has several columns with that name",
            "give the columns unique names with AS",
        ),
        (
            f"from {ORDERS} o |> extend 1 as amount |> where amount > 1",
            "`o` and a relation without an alias have a column with that name",
            "write, for example, `o.amount`",
        ),
    ],
)
def test_an_ambiguous_name_lists_the_relations(tmp_path: Path, sql: str, why: str, fix: str) -> None:
    """The finding lists the relations with the column; its fix suggests a prefix only if that is unambiguous."""
    found = finding(tmp_path, "ambiguous-column", sql)

    assert (found.why, found.fix) == (why, fix)


@pytest.mark.parametrize(
    ("sql", "fix"),
    [
        (
            f"select row_number() over (partition by id order by ts desc) as n from {ORDERS}",
            "for the latest row of each id: select max_by(struct(*), ts) as latest ... group by id",
        ),
        (
            f"select row_number() over (partition by id order by ts) as n from {ORDERS}",
            f"for the first row of each id: {FIRST} ... group by id; or set deduplicate: [id] in the model's configuration",
        ),
        (
            f"select lag(n) over (order by ts) as m from (select count(*) as n, max(ts) as ts from {MARKED} group by id)",
            "collect the rows and compare them there: array_sort(collect_list(struct(ts, *))) ... group by window(ts, '1 hour')",
        ),
        (
            f"select row_number() over (order by made) as n from {ORDERS}",
            "for the first row: select min_by(struct(*), made) as first ... without GROUP BY",
        ),
        (
            f"select row_number() over (partition by id order by `amount` desc) as n from {ORDERS}",
            "for the largest row of each id: select max_by(struct(*), `amount`) as largest ... group by id",
        ),
        (
            f"select sum(id) over (order by id + 1) as n from {MARKED}",
            "aggregate instead: SUM(id) ... group by window(ts, '1 hour')",
        ),
        (
            f"select sum(id) over (order by loaded_at) as n from {MARKED}",
            "aggregate instead: SUM(id) ... group by window(loaded_at, '1 hour')",
        ),
    ],
)
def test_a_window_function_becomes_an_aggregation(tmp_path: Path, sql: str, fix: str) -> None:
    """The fix rewrites a window function as an aggregation over the ORDER BY column, or over event-time windows."""
    assert finding(tmp_path, "window-function", sql).fix == fix


@pytest.mark.parametrize(
    ("sql", "fix"),
    [
        ("select date_trunc('HOUR', ts) as h, count(*) as n from {0} group by 1", "group by window(ts, '1 hour')"),
        ("select ts::date as day, count(*) as n from {0} group by 1", "group by window(ts, '1 day')"),
        ("select cast(ts as string) as s, count(*) as n from {0} group by 1", "group by window(ts, '10 minutes')"),
    ],
)
def test_a_truncated_time_becomes_a_window(tmp_path: Path, sql: str, fix: str) -> None:
    """Grouping by a truncated time gives a fix with a window of the same length, if that is known."""
    found = finding(tmp_path, "append-without-watermark", sql.format(MARKED))

    assert found.fix == f"{fix} instead, and select window.start"


def test_the_start_of_a_window_has_lost_its_watermark(tmp_path: Path) -> None:
    """Grouping by `window.start` gives the fix to select the window, which keeps the watermark."""
    windows = f"(select window.start as s from {MARKED} group by window(ts, '1 minute'))"

    found = finding(
        tmp_path, "append-without-watermark", f"select count(*) as n from {windows} group by window(s, '1 hour')"
    )

    assert "`window` has a watermark, but `window.start` in" in found.why
    assert "also select `window` unchanged" in found.fix


def test_a_static_sort_may_stay(tmp_path: Path) -> None:
    """The fix does not ask to remove a sort of static data."""
    sql = f"select o.id from {ORDERS} o join (select * from {ZONES} order by name limit 3) z on o.id = z.id"

    found = finding(tmp_path, "complete-without-aggregation", sql, "complete")

    assert found.fix == "use output_mode='append'"


def test_the_fix_suggests_a_timestamp_for_the_watermark(tmp_path: Path) -> None:
    """The fix for a watermark on another type suggests a timestamp column without a watermark."""
    sql = f"select /*+ WATERMARK(id, '10 minutes') */ * from {ORDERS}"

    assert finding(tmp_path, "watermark-type", sql).fix == (
        "declare it on `ts`, which is a timestamp; or convert it in an upstream model, for example to_timestamp(id) as id"
    )


def test_a_call_is_quoted_as_written(tmp_path: Path) -> None:
    """A message quotes a call as written, on one line and with expanded template values."""
    sql = f"select Count( distinct\n  id ) as n from {ORDERS}"
    assert finding(tmp_path, "distinct-aggregate", sql).message == "`Count( distinct id )` cannot run on a stream"

    sql = f"select count(distinct 'a\nb') as n from {ORDERS}"
    assert "'a\\nb'" in finding(tmp_path, "distinct-aggregate", sql).message


@pytest.mark.parametrize(
    ("sql", "is_refused"),
    [
        (f"with x as (select id from {MARKED}) select id from x union all select id from x", True),
        ("select id from {{ ref('inner') }} union all select id from {{ ref('inner') }}", False),
        (f"select id from {ORDERS} where id in (select /*+ COALESCE(1) */ id from {ZONES})", False),
        (f"select /*+ COALESCE(1) */ id from {ORDERS}", True),
    ],
)
def test_shared_ctes_and_hints_under_a_real_time_trigger(tmp_path: Path, sql: str, is_refused: bool) -> None:
    """Real-time triggers refuse a CTE that is read twice and hints outside subqueries, but not two references."""
    config = "{{ config(sink='out', output_mode='update', trigger={'real_time': '5 minutes'}) }}\n"
    files = {**FILES, "models/inner.sql": f"with a as (select id from {ORDERS}) select id from a"}
    for name, text in {**files, "models/asked.sql": config + sql}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)

    with pytest.raises(FindingsError) as raised:
        compile_models(ProjectRequest(tmp_path))

    said = [item.message for item in raised.value.findings if item.code == "real-time-trigger"]
    assert any("with itself" in text or "COALESCE" in text for text in said) is is_refused


def test_half_a_surrogate_pair_is_a_syntax_error(tmp_path: Path) -> None:
    """Half of a surrogate pair is a syntax error, because it is not a character."""
    found = finding(tmp_path, "sql-syntax", "select '{{ '\\udce9' }}' as x")

    assert found.why == "unpaired surrogate (invalid Unicode)"
