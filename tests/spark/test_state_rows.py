"""`sqlstream state show` and `state size`: the state of real queries."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from sqlstream import UsageError
from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.rows import show_state, state_size
from sqlstream.cli.main import cli
from tests.spark.conftest import ProjectFolder, shop_project

TOTALS = (
    "{{ config(sink='nowhere', output_mode='update') }}\n"
    "select kind, sum(amount) as total, count(*) as n from {{ source('shop', 'orders') }} group by kind\n"
)
PAIRS = """{{ config(sink='nowhere') }}
select /*+ WATERMARK(a.ts, '1 hour'), WATERMARK(b.ts, '1 hour') */ a.id as one, b.id as other
from {{ source('shop', 'orders') }} a join {{ source('shop', 'orders') }} b
  on b.id = a.id and b.ts between a.ts and a.ts + interval 1 hour
"""


@pytest.fixture
def totals(orders: ProjectFolder) -> ProjectFolder:
    """A project whose query `totals` has read ten orders of two kinds."""
    orders.write(
        {
            "models/totals.sql": TOTALS,
            "models/plain.sql": "{{ config(sink='lake') }} select 1 as one from {{ source('shop', 'orders') }}\n",
        }
    )
    orders.run()
    return orders


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for a project."""
    return ProjectRequest(folder.root, env=os.environ)


def test_the_rows_of_an_aggregation(totals: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each group is a row with its key and its buffers; a condition chooses keys."""
    shown = show_state(request(totals), "totals", limit=10)
    chosen = show_state(request(totals), "totals", key="kind = 'a'", limit=10)

    (store,) = shown.stores
    assert store.name == "stateStoreSave 0"
    assert sorted(row[:3] for row in store.rows) == [("a", 12, 6), ("b", 8, 4)]
    assert [row[0] for row in chosen.stores[0].rows] == ["a"]

    monkeypatch.chdir(totals.root)
    done = CliRunner().invoke(cli, ["state", "show", "totals", "--limit", "1", "--output", "json"])
    (entry,) = json.loads(done.stdout)["results"]
    assert len(entry["rows"]) == 1


def test_the_state_below_special_characters(tmp_path: Path) -> None:
    """The state is found in a folder whose name has spaces, brackets and percent signs."""
    folder = shop_project(tmp_path / "depot [v2] 5%25")
    folder.write({"models/totals.sql": TOTALS})
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a", "amount": 2}])
    folder.run()

    (store,) = show_state(request(folder), "totals", limit=10).stores
    (size,) = state_size(request(folder), "totals").stores

    assert [row[0] for row in store.rows] == ["a"]
    assert sum(partition.rows for partition in size.partitions) == 1


def test_the_size_of_an_aggregation(totals: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows are counted in their partitions, and the files of each partition."""
    (size,) = state_size(request(totals), "totals").stores

    assert size.rows == 2
    assert size.skew in (1.0, 2.0)
    assert all(size.bytes_on_disk[each.partition] > 0 for each in size.partitions)

    monkeypatch.chdir(totals.root)
    text = CliRunner().invoke(cli, ["state", "size", "totals"]).stdout
    assert text.splitlines()[-1].startswith("stateStoreSave 0: 2 rows, ")


@pytest.mark.slow
def test_the_stores_of_a_join(orders: ProjectFolder) -> None:
    """A join of streams has four stores; the rows of both sides are in it."""
    orders.write({"models/pairs.sql": PAIRS})
    orders.run()

    sizes = state_size(request(orders), "pairs").stores

    assert {size.store.kind for size in sizes} == {"symmetricHashJoin"}
    assert sum(size.rows for size in sizes) > 0


def test_a_query_without_state(totals: ProjectFolder) -> None:
    """A projection remembers nothing, and a query that has not run neither."""
    totals.write({"models/later.sql": TOTALS})

    with pytest.raises(UsageError, match="`plain` keeps no state"):
        show_state(request(totals), "plain", limit=1)
    with pytest.raises(UsageError, match="`later` has no state yet"):
        state_size(request(totals), "later")
