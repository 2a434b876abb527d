"""Tables that a query names without ref() or source()."""

from __future__ import annotations

from pathlib import Path

import pytest

from sqlstream.app.loading.load import try_load
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.graph import NodeNames
from sqlstream.compiler.rewrite.bare_names import bare_name_problems, bare_names, spellings_of
from sqlstream.compiler.sql.sql_text import read_sql
from sqlstream.errors import Severity

NAMES = NodeNames(
    nodes={"orders": "model.p.orders", "regions": "seed.p.regions", "daily": "model.p.daily"},
    sources={("shop", "Payments"): "source.p.shop.Payments", ("shop", "orders"): "source.p.shop.orders"},
    disabled=frozenset(),
)

UNLIKE = "use {{ ref('MODEL') }} or {{ source('SOURCE', 'TABLE') }}"


def found(sql: str, *views: str, has_catalog: bool = False) -> list[tuple[str, str]]:
    """Returns the first word at each problem and the fix, for the model `daily` that reads `views`."""
    problems = bare_name_problems(
        bare_names(read_sql(sql), views), "daily", spellings_of(NAMES, has_catalog=has_catalog)
    )
    assert all(problem.code == "missing-ref" for problem in problems)
    assert all(problem.severity is (Severity.WARNING if has_catalog else Severity.ERROR) for problem in problems)
    return [(sql[problem.offset :].split()[0], problem.fix) for problem in problems]


@pytest.mark.parametrize(
    ("sql", "at", "call"),
    [
        ("select * from orders", "orders", "{{ ref('orders') }}"),
        ("select * from x join Regions on true", "Regions", "{{ ref('regions') }}"),
        ("select * from (select * from `orders` )", "`orders`", "{{ ref('orders') }}"),
        ("table payments", "payments", "{{ source('shop', 'Payments') }}"),
        ("select * from shop__payments", "shop__payments", "{{ source('shop', 'Payments') }}"),
        ("select * from shop.orders", "shop.orders", "{{ source('shop', 'orders') }}"),
        ("select * from `shop` . payments p", "`shop`", "{{ source('shop', 'Payments') }}"),
    ],
)
def test_a_bare_name_is_found(sql: str, at: str, call: str) -> None:
    """A node's name without ref() or source() is found at its first character, in any case and quoting."""
    assert found(sql) == [(at, f"use {call}")]


@pytest.mark.parametrize(
    "sql",
    [
        "select * from shop__orders",
        "with orders as (select 1) select * from orders",
        "select orders from x",
        "select orders.id from x as orders",
        "select * from spark_catalog.shop.orders",
        "select * from orders(1)",
        "select * from other",
    ],
)
def test_other_names_are_left_alone(sql: str) -> None:
    """Views that the model reads, CTEs, columns, aliases, functions and unknown tables give no finding."""
    assert found(sql, "shop__orders") == []


@pytest.mark.parametrize(
    ("sql", "tables"),
    [
        ("select * from ordrs", {"ordrs": "did you mean {{ ref('orders') }} or {{ source('shop', 'orders') }}?"}),
        ("with a as (select 1) select * from a join b using (x)", {"b": UNLIKE}),
        ("select * from json.`in/orders`, other.table, range(3), values (1) as v", {}),
        ("from shop__orders map id, kind using 'cat' as a, b", {}),
        ("from shop__orders o reduce id, kind using 'cat' as a, b", {}),
        ("select * from shop__orders map, kind", {"kind": UNLIKE}),
    ],
)
def test_a_table_that_cannot_exist_is_an_error(sql: str, tables: dict[str, str]) -> None:
    """An unknown table is an error if no table can exist; names that may be files are skipped."""
    known = spellings_of(NAMES, has_catalog=False, may_have_tables=False)
    problems = bare_name_problems(bare_names(read_sql(sql), ["shop__orders"]), "daily", known)

    assert {sql[problem.offset :].split()[0]: problem.fix for problem in problems} == tables


@pytest.mark.parametrize(
    "files",
    [
        {"project.yml": "targets: {local: {spark: {spark.sql.catalogImplementation: hive}}}"},
        {"project.yml": "targets: {local: {spark: {spark.sql.warehouse.dir: /lasting}}}"},
        {"project.yml": "targets: {local: {master: 'spark://elsewhere:7077', storage: 's3a://bucket'}}"},
        {"sinks.yml": "sinks: [{name: out, format: table}]"},
        {"models/made.py": "def model(sqlstream, spark):\n    return sqlstream.source('shop', 'orders')\n"},
    ],
)
def test_a_table_that_may_exist_is_left_alone(tmp_path: Path, files: dict[str, str]) -> None:
    """An unknown table gives no finding if a catalog, a query or Python code may provide it."""
    sources = "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'id int'}]}]"
    written = {"sources.yml": sources, "models/asked.sql": "select * from elsewhere", **files}
    written["project.yml"] = "name: p\n" + files.get("project.yml", "")
    for name, text in written.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    found = try_load(ProjectRequest(tmp_path, env={})).findings

    assert [finding for finding in found if finding.code == "missing-ref"] == []


def test_a_model_that_reads_itself_gets_its_own_fix() -> None:
    """A model that reads its own name gets an error whose fix does not suggest ref()."""
    ((at, fix),) = found("select * from daily")

    assert at == "daily"
    assert "ref(" not in fix


def test_with_a_catalog_a_bare_name_is_a_warning() -> None:
    """On a target with a catalog, a bare name is only a warning, because it may name a table there."""
    assert found("select * from orders", has_catalog=True)
