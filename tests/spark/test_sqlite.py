"""Queries that write to a table in a SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import pytest

from sqlstream.errors import FindingsError
from tests.spark.conftest import ProjectFolder, order_rows

TOTALS = (
    "{{ config(sink='counts', output_mode='update', unique_key='kind') }}\n"
    "select kind, count(*) as orders, cast(sum(amount) as int) as amount from {{ source('shop', 'orders') }} group by kind"
)


@pytest.fixture
def shop(orders: ProjectFolder) -> ProjectFolder:
    """Two files of orders, and a sink of SQLite files."""
    orders.write({"models/_counts.yml": "sinks: [{name: counts, format: sqlite, path: '{{ model.name }}.sqlite'}]\n"})
    return orders


def rows_of(project: ProjectFolder, name: str, columns: str = "*") -> list[Sequence[object]]:
    """Returns the sorted rows of a table."""
    with sqlite3.connect(project.root / f"store/{name}.sqlite") as connection:
        return sorted(connection.execute(f"select {columns} from {name}").fetchall())


def edit(project: ProjectFolder, name: str, statement: str) -> None:
    """Runs a statement in the file of a query."""
    with sqlite3.connect(project.root / f"store/{name}.sqlite") as connection:
        connection.execute(statement)


@pytest.mark.smoke
def test_update_mode_replaces_the_row_of_a_key(shop: ProjectFolder) -> None:
    """The table has one row for each group, also after a restart, and a repeated batch changes nothing."""
    shop.write({"models/totals.sql": TOTALS})
    assert shop.run("totals").succeeded
    assert rows_of(shop, "totals") == [("a", 6, 12), ("b", 4, 8)]

    (shop.root / "store/queries/totals/v1/checkpoint/commits/1").unlink()
    edit(shop, "totals", "update totals set orders = -1 where kind = 'a'")
    assert shop.run("totals").succeeded
    assert rows_of(shop, "totals") == [("a", -1, 12), ("b", 4, 8)]

    shop.rows("in/orders/2.json", order_rows(2, 1), modified=2)
    assert shop.run("totals").succeeded
    assert rows_of(shop, "totals") == [("a", 7, 12), ("b", 4, 8)]


def test_complete_mode_and_batch_models_replace_all_rows(shop: ProjectFolder) -> None:
    """A key that disappears from the result disappears from the table; rows that are written again are not added."""
    shop.write(
        {
            "models/latest.sql": "{{ config(sink='counts', output_mode='complete') }}\n"
            "select kind, max(id) as id from {{ source('shop', 'orders') }} group by kind",
            "models/kinds.sql": "{{ config(sink='counts') }} select * from {{ ref('names') }}",
            "seeds/names.csv": "kind,name\na,first\n",
        }
    )
    assert shop.run().succeeded
    shop.write({"seeds/names.csv": "kind,name\nb,second\n"})
    shop.rows("in/orders/2.json", order_rows(2), modified=2)
    assert shop.run().succeeded

    assert rows_of(shop, "latest") == [("a", 24), ("b", 23)]
    assert rows_of(shop, "kinds") == [("b", "second")]


def test_append_mode_with_a_key_replaces_and_deletes(shop: ProjectFolder) -> None:
    """The newest row of a key stays; a row that meets `delete_when` removes it."""
    shop.write(
        {
            "models/state.sql": "{{ config(sink='counts', unique_key=['ts', 'name'], delete_when='amount = 3') }}\n"
            "select id, amount, id >= 10 as k, timestamp'1969-12-31 23:59:59.5Z' as ts, "
            "elt(id + 1, 'a', 'A', 'á', 'b', 'B') as name from {{ source('shop', 'orders') }}",
        }
    )
    shop.rows("in/orders/0.json", [{**row, "amount": row["amount"] + 1} for row in order_rows(0)], modified=0)
    shop.rows("in/orders/1.json", order_rows(0, 4), modified=1)
    assert shop.run("state").succeeded
    assert rows_of(shop, "state", "id, amount, k") == [(0, 0, 0), (1, 1, 0), (2, 2, 0), (4, 5, 0)]


def test_every_type_is_stored_as_documented(shop: ProjectFolder) -> None:
    """Times are UTC text of fixed length, long decimals and nested values are text, and null stays null."""
    shop.write(
        {
            "models/typed.sql": """{{ config(sink='counts') }}
select true as yes, 7Y as tiny, 1.5D as double, 1.25BD as decimal, cast(1 as decimal(38, 1)) as long_decimal,
  timestamp'1969-12-31 23:59:59.5Z' as ts, timestamp_ntz'2024-01-02 03:04:05' as ntz, date'2024-01-02' as day,
  X'00ff' as bytes, array(1, 2) as list, named_struct('a', 1) as fields, cast(null as timestamp) as none,
  interval '1' day as span
from {{ source('shop', 'orders') }} where id = 0""",
        }
    )
    assert shop.run("typed").succeeded

    assert rows_of(shop, "typed") == [
        (
            *(1, 7, 1.5, 1.25, "1.0", "1969-12-31T23:59:59.500000Z", "2024-01-02T03:04:05.000000", "2024-01-02"),
            *(b"\x00\xff", "[1,2]", '{"a":1}', None, "INTERVAL '1' DAY"),
        )
    ]


@pytest.mark.parametrize(("key", "problem"), [("kind", "two rows"), ("amount", "null")])
def test_a_wrong_key_is_refused_once(shop: ProjectFolder, key: str, problem: str) -> None:
    """Two rows of a batch with one key, or null in a key, end the query without a restart, and nothing is written."""
    shop.rows("in/orders/0.json", [{"id": 1, "kind": "a"}, {"id": 2, "kind": "a"}], modified=0)
    shop.write(
        {
            "models/keyed.sql": f"{{{{ config(sink='counts', unique_key='{key}') }}}}\n"
            "select id, kind, amount from {{ source('shop', 'orders') }}",
        }
    )
    result = shop.result("keyed")

    assert result.finding is not None
    assert problem in result.finding.why
    assert key in result.finding.why
    assert "Traceback" not in result.finding.why
    assert result.restarts == 0
    assert rows_of(shop, "keyed") == []


def test_a_new_column_is_added_and_another_type_is_refused(shop: ProjectFolder) -> None:
    """The run says what is new; a type that the table cannot hold stops the query before its first batch."""
    shop.write({"models/rows.sql": "{{ config(sink='counts') }} select id from {{ source('shop', 'orders') }}"})
    assert shop.run("rows").succeeded
    shop.write({"models/rows.sql": "{{ config(sink='counts') }} select id, kind from {{ source('shop', 'orders') }}"})
    shop.rows("in/orders/2.json", order_rows(2, 1), modified=2)
    assert shop.run("rows").succeeded
    assert any("column `kind` is new" in str(event) for event in shop.events)
    assert rows_of(shop, "rows")[-1] == (20, "a")

    shop.write(
        {
            "models/rows.sql": "{{ config(sink='counts') }} select cast(id as string) as id from {{ source('shop', 'orders') }}"
        }
    )
    with pytest.raises(FindingsError) as refused:
        shop.run("rows")
    (finding,) = refused.value.findings
    assert finding.code == "output-columns"
    assert "integer" in finding.why


def test_a_batch_model_whose_table_does_not_fit_is_refused(shop: ProjectFolder) -> None:
    """The finding names all differences, and nothing starts, as for a stream."""
    shop.write({"models/static.sql": "{{ config(sink='counts') }} select 1 as id, 2 as n"})
    assert shop.run("static").succeeded
    shop.write({"models/static.sql": "{{ config(sink='counts') }} select 'a' as id, 'b' as n"})

    with pytest.raises(FindingsError) as refused:
        shop.run("static")

    (finding,) = refused.value.findings
    assert finding.code == "output-columns"
    assert "`id`" in finding.why
    assert "`n`" in finding.why


@pytest.mark.smoke
def test_the_last_row_of_a_key_counts(shop: ProjectFolder) -> None:
    """With sequence_by several rows of one key in a batch leave the last one, which may delete the row of the table."""
    shop.write(
        {
            "models/newest.sql": "{{ config(sink='counts', unique_key='kind', sequence_by=['id'], delete_when='amount < 0') }}\n"
            "select kind, id, amount from {{ source('shop', 'orders') }}"
        }
    )
    assert shop.run("newest").succeeded
    assert rows_of(shop, "newest", "kind, id") == [("a", 14), ("b", 13)]

    shop.rows("in/orders/2.json", [{"id": 21, "kind": "a", "amount": -1}, {"id": 20, "kind": "a", "amount": 5}])
    assert shop.run("newest").succeeded
    assert rows_of(shop, "newest", "kind, id") == [("b", 13)]
