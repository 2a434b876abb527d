"""One query reads the same source several times with source evolution on: each reference has its own reader."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import FindingsError
from tests.spark.conftest import ProjectFolder

Rows = Callable[[Path], list[dict[str, Any]]]

SELF_JOIN = """{{ config(sink='lake') }}
select /*+ WATERMARK(a.ts, '1 hour'), WATERMARK(b.ts, '1 hour') */ a.id as id, b.id as next
from {{ source('shop', 'orders') }} a join {{ source('shop', 'orders') }} b
  on b.id = a.id + 1 and b.ts between a.ts and a.ts + interval 1 hour
"""


def source_names(folder: ProjectFolder, query: str) -> list[str]:
    """Returns the names of a query's readers from its ledger."""
    ledger = json.loads((folder.root / f"store/queries/{query}/v1/ledger.json").read_text())
    return [use["name"] for use in ledger["identity"]["sources"]]


@pytest.mark.smoke
def test_a_diamond_runs_and_resumes(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A union of two views over one source gives each row once per view, over two runs."""
    orders.write(
        {
            "models/small.sql": "select id, 'small' as arm from {{ source('shop', 'orders') }} where amount < 2",
            "models/every.sql": "select id, 'every' as arm from {{ source('shop', 'orders') }}",
            "models/both.sql": "{{ config(sink='lake') }}\nselect * from {{ ref('small') }} union all select * from {{ ref('every') }}",
        }
    )

    orders.result()
    orders.rows("in/orders/2.json", [{"id": 20, "amount": 0}], modified=2)
    result = orders.result()

    assert result.rows_out == 2
    rows = sorted((row["id"], row["arm"]) for row in read_parquet(orders.root / "store/both"))
    small = [(i, "small") for i in (0, 1, 10, 11, 20)]
    assert rows == sorted(small + [(i, "every") for i in (0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20)])
    assert source_names(orders, "both") == ["shop__orders", "shop__orders__2"]


@pytest.mark.smoke
def test_a_self_join_runs_and_resumes(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A stream joined with itself in one query runs; the second reference becomes a view, and the user's SQL stays."""
    orders.write({"models/pairs.sql": SELF_JOIN})

    orders.result()
    orders.rows("in/orders/2.json", [{"id": 15, "ts": "2024-01-01T01:05:00Z"}], modified=2)
    orders.result()

    rows = sorted((row["id"], row["next"]) for row in read_parquet(orders.root / "store/pairs"))
    assert rows == [(i, i + 1) for i in (0, 1, 2, 3, 10, 11, 12, 13, 14)]
    assert source_names(orders, "pairs") == ["shop__orders", "shop__orders__2"]
    assert "shop__orders__2" in (orders.root / "target/compiled/shop/models/pairs.sql").read_text()


def test_a_self_join_of_a_view_without_aliases_keeps_its_qualified_columns(orders: ProjectFolder) -> None:
    """The second branch of a union can use the view's name for its columns, although its view has been renamed."""
    orders.write(
        {
            "models/view.sql": "select id from {{ source('shop', 'orders') }}",
            "models/twice.sql": "{{ config(sink='nowhere') }}\nselect view.id from {{ ref('view') }}\n"
            "union all select view.id + 100 from {{ ref('view') }}",
        }
    )

    assert orders.result().rows_out == 20


@pytest.mark.slow
def test_a_stream_stream_join_over_one_source_runs(orders: ProjectFolder, read_parquet: Rows) -> None:
    """Two views of one source can be joined within a time bound."""
    orders.write(
        {
            "models/starts.sql": "select id as start_id, ts as start_ts from {{ source('shop', 'orders') }} where kind = 'a'",
            "models/ends.sql": "select id as end_id, ts as end_ts from {{ source('shop', 'orders') }} where kind = 'b'",
            "models/spans.sql": "{{ config(sink='lake') }}\n"
            "select /*+ WATERMARK(starts.start_ts, '1 hour'), WATERMARK(ends.end_ts, '1 hour') */ start_id, end_id\n"
            "from {{ ref('starts') }} join {{ ref('ends') }}\n"
            "  on end_id = start_id + 1 and end_ts between start_ts and start_ts + interval 5 minutes",
        }
    )

    orders.result()

    rows = sorted((row["start_id"], row["end_id"]) for row in read_parquet(orders.root / "store/spans"))
    assert rows == [(0, 1), (2, 3), (10, 11), (12, 13)]


@pytest.mark.slow
def test_moved_references_resume_at_their_own_offsets(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A reader keeps its name when another is added before it: it reads no row twice, the new one reads all rows."""
    small = "select id, 'small' as arm from {{ source('shop', 'orders') }} where amount < 2"
    orders.write({"models/small.sql": small, "models/some.sql": small.replace("small", "some")})
    first = "{{ config(sink='lake') }}\nselect * from {{ ref('small') }}"
    orders.write({"models/both.sql": first})
    orders.result()

    orders.write({"models/both.sql": first.replace("small", "some") + " union all select * from {{ ref('small') }}"})
    orders.result()

    rows = sorted((row["id"], row["arm"]) for row in read_parquet(orders.root / "store/both"))
    assert rows == sorted((i, arm) for i in (0, 1, 10, 11) for arm in ("small", "some"))
    assert source_names(orders, "both") == ["shop__orders__2", "shop__orders"]


def move(folder: ProjectFolder, path: str) -> None:
    """Declares another path for the orders."""
    sources = folder.root / "sources.yml"
    sources.write_text(sources.read_text().replace("path: in/orders", f"path: '{path}'"))


@pytest.mark.slow
def test_a_source_that_has_moved_is_refused(orders: ProjectFolder) -> None:
    """A moved source is refused: Spark would look for the last batch's files below the new path and fail for good."""
    orders.write({"models/ids.sql": "{{ config(sink='lake') }}\nselect id from {{ source('shop', 'orders') }}"})
    orders.result()
    orders.rows("new/orders/2.json", [{"id": 20}], modified=2)
    move(orders, "new/orders")

    with pytest.raises(FindingsError) as refused:
        orders.run()

    assert [finding.code for finding in refused.value.findings] == ["source-change"]


@pytest.mark.slow
@pytest.mark.parametrize("path", ["{in,new}/orders", "."])
def test_a_source_with_more_folders_resumes(orders: ProjectFolder, read_parquet: Rows, path: str) -> None:
    """A pattern or a wider folder that still contains the last batch's files is allowed: each row is read once."""
    orders.write({"models/ids.sql": "{{ config(sink='lake') }}\nselect id from {{ source('shop', 'orders') }}"})
    orders.result()
    orders.rows("new/orders/2.json", [{"id": 20}], modified=2)
    move(orders, path)
    sources = orders.root / "sources.yml"
    wider = "options: {recursiveFileLookup: true, pathGlobFilter: '[0-9].json', "
    sources.write_text(sources.read_text().replace("options: {", wider))

    orders.result()

    assert sorted(row["id"] for row in read_parquet(orders.root / "store/ids")) == [*range(5), *range(10, 15), 20]


@pytest.mark.slow
def test_a_branch_inserted_above_another_is_refused(orders: ProjectFolder) -> None:
    """A new branch above another one in the same query is refused: only their order tells them apart, so the old branch
    would read everything again.
    """
    branch = "select id from {{ source('shop', 'orders') }} where amount < 2"
    orders.write({"models/ids.sql": "{{ config(sink='lake') }}\n" + branch})
    orders.result()
    orders.write({"models/ids.sql": f"{{{{ config(sink='lake') }}}}\n{branch.replace('<', '>')} union all {branch}"})

    with pytest.raises(FindingsError) as refused:
        orders.run()

    assert [finding.code for finding in refused.value.findings] == ["state-change"]
