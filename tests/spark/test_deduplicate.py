"""`deduplicate`: one row per key, across batches and restarts; changing its columns changes the state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from sqlstream.state.runs.events import Notice, Status
from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

ONCE = (
    "{{ config(sink='lake', deduplicate=%s) }} select /*+ WATERMARK(ts, '10 minutes') */ * "
    "from {{ source('shop', 'orders') }}"
)


def order(id_: int, minute: int, amount: int) -> dict[str, Any]:
    """Returns an order at a minute of one hour."""
    return {"id": id_, "ts": f"2024-01-01T00:{minute:02}:00Z", "kind": "a", "amount": amount}


def amounts(rows: list[dict[str, Any]]) -> list[int]:
    """Returns the sorted amounts."""
    return sorted(row["amount"] for row in rows)


@pytest.mark.smoke
def test_the_first_row_of_a_key_is_kept_within_the_watermark(folder: ProjectFolder, read_parquet: Rows) -> None:
    """A key stays known across a restart; once the watermark has passed it, it is new again; late rows are dropped."""
    folder.write({"models/once.sql": ONCE % "['ID']"})
    out = folder.root / "store/once"
    folder.rows("in/orders/0.json", [order(1, 0, 10), order(2, 1, 20)], modified=0)
    folder.result()
    folder.rows("in/orders/1.json", [order(1, 2, 11), order(3, 30, 30)], modified=1)
    folder.result()
    assert amounts(read_parquet(out)) == [10, 20, 30]

    folder.rows("in/orders/2.json", [order(1, 31, 12), order(4, 5, 40)], modified=2)
    result = folder.result()
    assert amounts(read_parquet(out)) == [10, 12, 20, 30]
    assert (result.status, result.rows_out) == (Status.SUCCESS, 1)
    compiled = (folder.root / "target/compiled/shop/models/once.sql").read_text()
    assert compiled.splitlines()[-1] == "-- sqlstream: deduplicate by ID"


@pytest.mark.slow
def test_without_a_watermark_a_key_is_known_for_ever(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Without a watermark a key stays known for ever, with a warning; a view is deduplicated before its readers."""
    folder.write(
        {
            "models/once.sql": "{{ config(deduplicate='id') }} select * from {{ source('shop', 'orders') }}",
            "models/out.sql": "{{ config(sink='lake') }} select id, amount from {{ ref('once') }}",
        }
    )
    for number in range(3):
        folder.rows(
            f"in/orders/{number}.json", [order(1, number * 20, number), order(number + 5, 0, 9)], modified=number
        )
        outcome = folder.run()
        assert [warning.code for warning in outcome.warnings] == ["unbounded-state"]
        assert str(outcome.warnings[0].location) == "models/once.sql:1:11"

    assert amounts(read_parquet(folder.root / "store/out")) == [0, 9, 9, 9]


@pytest.mark.slow
def test_other_columns_are_a_state_change(folder: ProjectFolder) -> None:
    """Other columns are a state change, another order of them is not; an accepted change continues where Spark can."""
    folder.rows("in/orders/0.json", [order(1, 0, 10)], modified=0)
    for columns in ("['id', 'kind']", "['KIND', 'id']"):
        folder.write({"models/once.sql": ONCE % columns})
        folder.result()
        assert not [event for event in folder.events if isinstance(event, Notice)]

    folder.write({"models/once.sql": ONCE % "['id']"})
    with pytest.raises(FindingsError) as caught:
        folder.run()
    (finding,) = caught.value.findings
    assert (finding.code, "was deduplicated by id, kind, and is now deduplicated by id" in finding.message) == (
        "state-change",
        True,
    )


@pytest.mark.slow
def test_static_rows_are_deduplicated_too(folder: ProjectFolder) -> None:
    """Static rows are deduplicated too: a batch ignores the watermark in the SQL."""
    folder.write(
        {
            "seeds/people.csv": "id,at,name\n1,2024-01-01 00:00:00,a\n1,2024-01-01 00:00:00,b\n2,2024-01-01 00:00:00,c\n",
            "seeds/people.yml": "seeds: [{name: people, columns: [{name: at, data_type: timestamp}]}]\n",
            "models/once.sql": "{{ config(sink='table', deduplicate=['id']) }} "
            "select /*+ WATERMARK(at, '1 minute') */ * from {{ ref('people') }}",
        }
    )
    assert folder.result().rows_out == 2


def test_findings_of_spark_have_the_location_of_the_key(orders: ProjectFolder) -> None:
    """A missing column of a table without a schema, which only Spark detects, is reported where it is configured."""
    orders.write(
        {
            "sources.yml": "sources:\n  - {name: shop, tables: [{name: orders, format: json, path: in/orders, mode: batch}]}\n",
            "models/once.sql": "{{ config(sink='nowhere',\n  deduplicate=['missing']) }} "
            "select * from {{ source('shop', 'orders') }}",
        }
    )
    with pytest.raises(FindingsError) as caught:
        orders.run()
    (finding,) = caught.value.findings
    assert (finding.code, str(finding.location)) == ("sql-analysis", "models/once.sql:2:3")
