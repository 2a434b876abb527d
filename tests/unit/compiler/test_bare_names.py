"""Inputs that a query names without ref() or source()."""

from __future__ import annotations

import pytest

from sqlstream.compiler.bare_names import bare_name_problems, bare_names, spellings_of
from sqlstream.compiler.graph import Names
from sqlstream.compiler.sql_text import read_sql
from sqlstream.errors import Severity

NAMES = Names(
    nodes={"orders": "model.p.orders", "regions": "seed.p.regions", "daily": "model.p.daily"},
    sources={("shop", "Payments"): "source.p.shop.Payments", ("shop", "orders"): "source.p.shop.orders"},
    disabled=frozenset(),
)


def found(sql: str, *views: str, has_catalog: bool = False) -> list[tuple[str, str]]:
    """What stands at each problem, and its fix, for the model `daily` that reads `views`."""
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
    """At its first character, whatever its case and however it is quoted."""
    assert found(sql) == [(at, f"write {call}")]


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
    """Views that the model reads, CTEs, columns, aliases, functions, and tables that the project does not know."""
    assert found(sql, "shop__orders") == []


def test_a_model_that_reads_itself_is_told_so() -> None:
    """As `{{ this }}` in a FROM would: the fix is no ref()."""
    ((at, fix),) = found("select * from daily")

    assert at == "daily"
    assert "ref(" not in fix


def test_where_spark_has_tables_of_its_own_it_is_a_warning() -> None:
    """The name may then be that of a table in a catalog."""
    assert found("select * from orders", has_catalog=True)
