"""The columns that a model returns, with their types, watermarks and origins."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream import FindingsError, ProjectRequest, compile_models
from sqlstream.codes import ADVICE
from sqlstream.compiler.analysed import analyse_models
from sqlstream.compiler.flow.analysis import Analysis
from sqlstream.compiler.flow.columns import Column
from sqlstream.location import Location

ORDERS = "{{ source('shop', 'orders') }}"
PAYMENTS = "{{ source('shop', 'payments') }}"
WATERMARKED = f"{ORDERS} WATERMARK ts DELAY OF INTERVAL 10 MINUTES"

FILES = {
    "project.yml": "name: shop\ntargets:\n  local: {master: local, storage: store}\ndefault_target: local\n",
    "sources.yml": """sources:
  - name: shop
    tables:
      - name: orders
        format: json
        path: orders
        schema: id int, ts timestamp, amount decimal(10,2), tags array<string>, a struct<b int, c struct<d string>>
      - {name: payments, format: json, path: payments, schema: 'id int, paid double'}
      - {name: raw, format: hudi, path: raw}
""",
    "seeds/zones.csv": "zone,city\n1,Bern\n",
}


def analysis_of(folder: Path, sql: str, **models: str) -> Analysis:
    """Returns the analysis of a model with this SQL that reads other `models`."""
    for name, text in {**FILES, **{f"models/{name}.sql": text for name, text in models.items()}}.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "models").mkdir(exist_ok=True)
    (folder / "models/asked.sql").write_text(sql)
    compiled = compile_models(ProjectRequest(folder)).loaded.compiled
    return analyse_models(compiled.project, compiled.models)["model.shop.asked"]


def columns_of(folder: Path, sql: str, **models: str) -> tuple[Column, ...]:
    """Returns the columns of a model after checking that they are known and the model has no problems."""
    analysis = analysis_of(folder, sql, **models)
    assert analysis.problems == ()
    assert analysis.node.columns is not None
    return analysis.node.columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"select * from {PAYMENTS}", "id int, paid double"),
        (f"select * except (paid) from {PAYMENTS}", "id int"),
        (f"select p.id from (({PAYMENTS}) p)", "id int"),
        (f"select p.id from ((select id from {PAYMENTS}) p)", "id int"),
        (f"select * from {PAYMENTS} pivot (sum(paid) for id in (1, 2 as two))", "1 double, two double"),
        (f"select * from {PAYMENTS} unpivot (v for k in (id, paid as p))", "k string, v double"),
        (f"from {PAYMENTS} |> extend id + 1 as i |> drop paid |> set id = 'x'", "id string, i int"),
        (f"from {PAYMENTS} p |> aggregate max(paid) as m group by id |> select p.id, m", "id int, m double"),
        (f"select p.*, 1 as one from {PAYMENTS} p", "id int, paid double, one int"),
        (f"select a.b, a.c.d, a.* from {ORDERS}", "b int, d string, b int, c struct<d:string>"),
        (f"select o.a.c.d as x from {ORDERS} o", "x string"),
        (f"with x as (select id as n from {PAYMENTS}), y as (select n + 1 as m from x) select * from y", "m int"),
        (f"with x(k) as (select id from {PAYMENTS}) select k from x", "k int"),
        (f"select q.n from (select count(*) as n from {PAYMENTS}) q", "n bigint"),
        (f"select * from {ORDERS} o join {PAYMENTS} p using (id)", None),
        (f"select id, paid from {ORDERS} o join {PAYMENTS} p using (id)", "id int, paid double"),
        (f"select o.id from {ORDERS} o left semi join {PAYMENTS} p on o.id = p.id", "id int"),
        (f"select id, tag from {ORDERS} lateral view explode(tags) e as tag", "id int, tag string"),
        (f"select explode(tags) as tag, id from {ORDERS}", "tag string, id int"),
        (f"select id from {ORDERS} union all select paid from {PAYMENTS}", "id double"),
        (
            f"select amount + 1 as twice, twice * 2 as more from (select id as amount from {PAYMENTS})",
            "twice int, more int",
        ),
        (
            f"select window.start as s, count(*) as n from {ORDERS} group by window(ts, '1 hour')",
            "s timestamp, n bigint",
        ),
        (f"select from_json('x', 'u int, v array<string>').v as v from {ORDERS}", "v array<string>"),
        ("select zone, city from {{ ref('zones') }}", "zone None, city None"),
        (f"select id from {ORDERS} -- a comment\n where id > 1", "id int"),
    ],
)
def test_names_and_types_flow_through_a_query(tmp_path: Path, sql: str, expected: str | None) -> None:
    """Column names and types match Spark's analyzer; the type of an undeclared seed column is None."""
    found = ", ".join(f"{column.name} {column.type}" for column in columns_of(tmp_path, sql))

    if expected is None:
        assert found.startswith("id int, ts timestamp")
        assert found.count("id int") == 1
    else:
        assert found == expected


@pytest.mark.parametrize(
    ("sql", "carries"),
    [
        (f"select ts from {WATERMARKED}", True),
        (f"select ts as at from {WATERMARKED}", True),
        (f"select (ts) as at from {WATERMARKED}", True),
        (f"select at from (select ts as at from {WATERMARKED}) x", True),
        (f"select window(ts, '1 hour') as w from {WATERMARKED}", True),
        (f"select window_time(w) as t from (select window(ts, '1 hour') as w from {WATERMARKED})", True),
        (f"select o.ts from {WATERMARKED} o join {PAYMENTS} p on o.id = p.id", True),
        (f"select ts from {WATERMARKED} union all select ts from {ORDERS}", True),
        (f"select ts from {ORDERS}", False),
        (f"select cast(ts as timestamp) as ts from {WATERMARKED}", False),
        (f"select coalesce(ts, ts) as ts from {WATERMARKED}", False),
        (f"select date_trunc('hour', ts) as ts from {WATERMARKED}", False),
        (f"select ts + interval 1 hour as ts from {WATERMARKED}", False),
        (f"select max(ts) as ts from {WATERMARKED}", False),
        (f"select window(ts, '1 hour').start as ts from {WATERMARKED}", False),
    ],
)
def test_a_watermark_stays_on_a_column_and_on_windows_over_it(tmp_path: Path, sql: str, carries: bool) -> None:
    """A column and the windows over it keep the watermark, and any other expression loses it."""
    (column,) = columns_of(tmp_path, sql)

    assert (column.event_time is not None) is carries


def test_a_field_of_a_renamed_struct_keeps_its_watermark(tmp_path: Path) -> None:
    """A field of a renamed struct keeps its watermark, and a column taken from it has it too."""
    inner = f"select s as r from (select struct(ts) as s from {WATERMARKED})"

    (column,) = columns_of(tmp_path, f"select r.ts as t from ({inner})")

    assert (column.event_time is not None, column.lost, column.may_carry) == (True, None, False)


@pytest.mark.parametrize(
    ("sql", "carries"),
    [
        (f"select inline(array(struct(ts))) from {WATERMARKED}", True),
        (f"select struct(*).ts from {WATERMARKED}", True),
        (f"select map('k', struct(ts))['k'].ts from {WATERMARKED}", True),
        (f"select m.ts from (select max(struct(ts)) as m from {WATERMARKED})", True),
        (f"select explode(array(ts)) as ts from {WATERMARKED}", False),
        (f"select struct(ts + interval 1 hour as ts).ts from {WATERMARKED}", False),
        (f"select from_json(to_json(struct(ts)), 'ts timestamp').ts from {WATERMARKED}", False),
    ],
)
def test_a_field_of_a_nested_struct_keeps_its_watermark(tmp_path: Path, sql: str, carries: bool) -> None:
    """Array elements and map values lose the watermark, but the fields of structs in them keep it."""
    (column,) = columns_of(tmp_path, sql)

    assert (column.event_time is not None, column.may_carry) == (carries, False)


def test_a_watermark_on_an_unknown_column_is_an_error(tmp_path: Path) -> None:
    """A watermark on an unknown column is an error at the column name in the clause."""
    sql = f"select * from {ORDERS} WATERMARK tz DELAY OF INTERVAL 1 MINUTE as o"

    with pytest.raises(FindingsError) as raised:
        analysis_of(tmp_path, sql)

    (finding,) = [finding for finding in raised.value.findings if finding.is_error]
    assert (finding.code, finding.location) == ("unknown-column", Location("models/asked.sql", 1, sql.index("tz") + 1))


def test_a_lost_watermark_is_traced_to_the_model_that_lost_it(tmp_path: Path) -> None:
    """A lost watermark is traced through two references to the model that lost it."""
    cast = f"select id, cast(ts as date) as day from {WATERMARKED}"

    columns = columns_of(
        tmp_path, "select day from {{ ref('days') }}", days="select * from {{ ref('cast') }}", cast=cast
    )

    assert columns[0].lost is not None
    assert (columns[0].lost.where.model, columns[0].lost.column) == ("model.shop.cast", "ts")


def test_origins_reach_to_the_sources(tmp_path: Path) -> None:
    """The origins of a column are traced through another model and a join to the sources."""
    upstream = f"select id, amount * 2 as twice from {ORDERS}"

    columns = columns_of(
        tmp_path,
        f"select u.twice + p.paid as total from {{{{ ref('u') }}}} u join {PAYMENTS} p on u.id = p.id",
        u=upstream,
    )

    assert columns[0].origins == {("source.shop.shop.orders", "amount"), ("source.shop.shop.payments", "paid")}


@pytest.mark.parametrize(
    "sql",
    [
        "select * from {{ source('shop', 'raw') }}",
        "select value, nothing from {{ source('shop', 'raw') }}",
        f"select x.a, y from some_catalog.t x join {PAYMENTS} p on p.id = x.id",
        f"from {PAYMENTS} |> where id > 1 |> match_recognize (x) |> select y",
        f"select struct(*).a as a from {PAYMENTS} join (select * from {{{{ source('shop', 'raw') }}}})",
    ],
)
def test_unknown_columns_give_no_errors(tmp_path: Path, sql: str) -> None:
    """A query over unknown columns has no errors, because Spark may know the columns."""
    assert analysis_of(tmp_path, sql).problems == ()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (f"select * except (id (select 1), paid) from {PAYMENTS}", "unknown-function"),
        (f"select * except (p id, id) from {PAYMENTS} p", "unknown-column"),
    ],
)
def test_incomplete_queries_are_refused(tmp_path: Path, sql: str, code: str) -> None:
    """An incomplete query, which Spark refuses, gives one finding."""
    with pytest.raises(FindingsError) as caught:
        analysis_of(tmp_path, sql)
    assert [finding.code for finding in caught.value.findings] == [code]


def test_an_incomplete_stage_is_left_to_spark(tmp_path: Path) -> None:
    """A stage of pipe syntax without its columns gives no column; Spark's parser refuses it."""
    analysis = analysis_of(tmp_path, f"from {PAYMENTS} |> drop |> where id > 1")
    assert (analysis.problems, analysis.columns) == ((), None)


@pytest.mark.parametrize(
    "sql",
    [
        f"select transform(tags, tag -> upper(tag)) as t from {ORDERS}",
        f"select timestampadd(HOUR, 1, ts) as t from {ORDERS}",
        f"select extract(hour from ts) as h from {ORDERS}",
        f"select id from {PAYMENTS} where exists (select 1 from {{{{ ref('zones') }}}} z where z.zone = paid)",
        f"select id as n from {PAYMENTS} order by n, paid",
        f"select count(*) as n, id from {PAYMENTS} group by id having n > 1",
        f"select current_date, current_timestamp as now, current_user as who from {PAYMENTS}",
        f"select id from {PAYMENTS} group by all",
        f"select p.id from {PAYMENTS} as p, lateral (select p.id + 1 as next) l",
        f"select sum(paid) filter (where id > 1) as s from {PAYMENTS}",
        f"select named_struct('x', id).x as x from {PAYMENTS}",
        f"select p.id from {PAYMENTS} p group by p.id having exists (select 1 from {{{{ ref('zones') }}}} z where z.zone = p.id)",
        f"select *, struct(*) as everything from {PAYMENTS}",
    ],
)
def test_names_other_than_columns_are_known(tmp_path: Path, sql: str) -> None:
    """Lambda variables, time units, aliases and correlated columns are not reported as unknown columns."""
    assert analysis_of(tmp_path, sql).problems == ()


@pytest.mark.parametrize(
    ("setting", "value"),
    [("spark.sql.caseSensitive", "true"), ("spark.sql.streaming.unsupportedOperationCheck", "false")],
)
def test_settings_that_change_spark_turn_errors_off(tmp_path: Path, setting: str, value: str) -> None:
    """A target whose settings change what Spark accepts gives no errors for its queries."""
    asked = f"select ID, id, nothing from {PAYMENTS}"
    with pytest.raises(FindingsError):
        analysis_of(tmp_path, asked)
    target = f"  local: {{master: local, storage: store, spark: {{{setting}: '{value}'}}}}\n"
    (tmp_path / "project.yml").write_text(
        FILES["project.yml"].replace("  local: {master: local, storage: store}\n", target)
    )

    assert {finding.code for finding in compile_models(ProjectRequest(tmp_path)).findings} <= ADVICE


@pytest.mark.parametrize(
    "query",
    [
        f"select id from (select id, ID from {ORDERS})",
        f"select x.Id from (select ID, id from {ORDERS}) x",
        f"with c as (select id, ID from {ORDERS}) select id from c where id > 1",
        f"select id from (select id, Id from {ORDERS} union all select id, cast(amount as int) from {ORDERS})",
        f"select id from (select distinct id, ID from {ORDERS}) a left semi join {PAYMENTS} b on a.id = b.id",
    ],
)
def test_a_column_in_two_letter_cases_is_one_attribute(tmp_path: Path, query: str) -> None:
    """Spark finds one attribute that a query selects by its name in two letter cases."""
    assert [column.name.lower() for column in columns_of(tmp_path, query)] == ["id"]


@pytest.mark.parametrize(
    "selected", ["id, id + 0 as ID", "id as ID, amount as id", "o.id, p.ID", "id, id as ID", "ID, o.a.b as id"]
)
def test_another_column_of_that_name_is_ambiguous(tmp_path: Path, selected: str) -> None:
    """A name with AS is another attribute for Spark, and so is the column of another relation."""
    joined = f"{ORDERS} o" + (f" join {PAYMENTS} p on o.id = p.id" if "p." in selected else "")
    with pytest.raises(FindingsError) as raised:
        columns_of(tmp_path, f"select id from (select {selected} from {joined})")
    assert "ambiguous-column" in {finding.code for finding in raised.value.findings}
