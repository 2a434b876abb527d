"""The SQL that carries the place of each row in its source: which queries can, and what they become."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import ProjectRequest, compile_models
from sqlstream.compiler.origins import origin_sql, with_origin

CARRIED = {
    "select a, b from v where a > 1": "select a, b, `v`.ORIGIN from v where a > 1",
    "select * from v": "select * except (ORIGIN), `v`.ORIGIN from v",
    "select * except (a) from v;": "select * except (ORIGIN, a), `v`.ORIGIN from v;",
    "select *, a * b as c from V as `my x` -- all": "select * except (ORIGIN), a * b as c, `my x`.ORIGIN from V as `my x` -- all",
    "select v.*, s.* from v join s on v.a = s.a": "select v.* except (ORIGIN), s.*, `v`.ORIGIN from v join s on v.a = s.a",
    "select b.*, p.q.* from v": "select b.*, p.q.*, `v`.ORIGIN from v",
    "select a from v where a in (select id from s)": "select a, `v`.ORIGIN from v where a in (select id from s)",
    "select a from (select a from v) where a > 1": "select a, ORIGIN from (select a, `v`.ORIGIN from v) where a > 1",
    "with c as (select * from v) select d.a from c d": "with c as (select * except (ORIGIN), `v`.ORIGIN from v) select d.a, `d`.ORIGIN from c d",
    "with c as (select a from s) select v.a, (select max(a) from c) from v": "with c as (select a from s) select v.a, (select max(a) from c), `v`.ORIGIN from v",
    "with v as (select * from v) select a from v": "with v as (select * except (ORIGIN), `v`.ORIGIN from v) select a, `v`.ORIGIN from v",
    "select a from v union all select b from v w": "select a, `v`.ORIGIN from v union all select b, `w`.ORIGIN from v w",
    "select x from v lateral view explode(b) t as x": "select x, `v`.ORIGIN from v lateral view explode(b) t as x",
    "select x.c from v, lateral (select explode(v.b) as c) x": "select x.c, `v`.ORIGIN from v, lateral (select explode(v.b) as c) x",
    "select /*+ BROADCAST(s) */ all v.a from v left join s using (a)": "select /*+ BROADCAST(s) */ all v.a, `v`.ORIGIN from v left join s using (a)",
    "select a from v WATERMARK ts DELAY OF INTERVAL 1 MINUTE as w": "select a, `w`.ORIGIN from v WATERMARK ts DELAY OF INTERVAL 1 MINUTE as w",
    "select transform(b, x -> x * 2) from v where offset > 3": "select transform(b, x -> x * 2), `v`.ORIGIN from v where offset > 3",
    "select a from (v join s on true)": "select a, `v`.ORIGIN from (v join s on true)",
}


@pytest.mark.parametrize("sql", CARRIED)
def test_a_query_passes_on_the_place_of_each_row(sql: str) -> None:
    """The hidden column follows the list of each SELECT, and no star has it."""
    carried = with_origin(sql, ["v"])
    assert (carried or "").replace("_sqlstream_source", "ORIGIN") == CARRIED[sql]


@pytest.mark.parametrize(
    "sql",
    [
        "select distinct a from v",
        "select a from v group by a",
        "select a from v group by all",
        "select count(*) from v",
        "select to_json(struct(*)) from v",
        "select hash(v.*) from v",
        "select array(a, *) from v",
        "select a from v union select b from v",
        "select a from v except all select b from v",
        "select a from v union all select a from s",
        "select a from v x join v y on x.a = y.a",
        "select a from s",
        "select a from v where exists (select * from v)",
        "with c(a) as (select a from v) select a from c",
        "with c as (select * from v), n as (select count(*) as n from c) select a, n from c join n",
        "with recursive c as (select * from v) select a from c",
        "select a from (v join s on true) as x",
        "select a from v as t (a, b)",
        "(select a from v) union all (select a from v)",
        "from v select a",
        "from v |> select a",
        "table v",
        "select a from v order by a",
        "select a from v limit 3",
        "select a from v tablesample (5 rows)",
        "select a from v having a > 1",
        "select * from v pivot (sum(a) for b in (1, 2))",
        "select * from (v unpivot (x for y in (a, b)))",
        "select transform(a) using 'cat' as (b string) from v",
        "select a from catalog.v",
        "select 'open from v",
        "",
    ],
)
def test_other_queries_stay_as_they_are(sql: str) -> None:
    """A query whose rows are not each one row of the stream, or to which a further column would matter, is not edited."""
    assert with_origin(sql, ["v"]) is None


@pytest.mark.parametrize(
    ("sql", "carried"),
    [
        ("select * from {{ ref('view') }}", {"view", "orders"}),
        ("select * from {{ source('shop', 'orders') }} o join {{ source('shop', 'kinds') }} k using (id)", {"orders"}),
        ("select id from {{ ref('view') }} group by id", set()),
        ("select id from {{ ref('once') }}", set()),
        ("select v.id from {{ ref('view') }} v join {{ source('shop', 'ticks') }} t on v.id = t.value", set()),
        ("select id from {{ ref('kept') }}", {"orders"}),
    ],
)
def test_the_place_is_carried_through_views_or_not_at_all(tmp_path: Path, sql: str, carried: set[str]) -> None:
    """All views on the way to the stream are edited; none is if one of them has a state, or joins another stream."""
    files = {
        "project.yml": "name: shop\n",
        "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in, schema: id bigint}\n"
        "      - {name: kinds, format: csv, path: kinds, mode: batch, schema: id bigint}\n"
        "      - {name: ticks, format: rate}\n",
        "sinks.yml": "sinks: [{name: out, format: parquet, path: '{{ model.name }}'}, {name: any, format: noop}]\n",
        "models/view.sql": "select id from {{ source('shop', 'orders') }}",
        "models/once.sql": "{{ config(deduplicate=['id']) }} select id from {{ ref('view') }}",
        "models/kept.sql": "{{ config(sink='out', materialized='stored') }} select id from {{ ref('view') }}",
        "models/orders.sql": f"{{{{ config(sink='any', output_mode='update') }}}} {sql}",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    compiled = compile_models(ProjectRequest(tmp_path)).loaded.compiled
    found = origin_sql(compiled, next(model for model in compiled.models.values() if model.name == "orders"))
    assert {compiled.models[node].name for node in found} == carried
