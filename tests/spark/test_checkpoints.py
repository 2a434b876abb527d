"""A change never mixes state in silence: what a run does with a checkpoint that another query made."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import ProjectFolder, order_rows

from sqlstream.errors import FindingsError
from sqlstream.state.events import Notice, TableShown

Rows = Callable[[Path], list[dict[str, Any]]]

SUMS = """{{{{ config(sink='lake') }}}}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, {aggregate} as total
from {{{{ source('shop', 'orders') }}}}
group by window(ts, '1 hour')
"""


@pytest.fixture
def sums(orders: ProjectFolder) -> ProjectFolder:
    """A stateful query that has run once: its checkpoint holds sums of amounts."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)")})
    orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    return orders


def ledger(folder: ProjectFolder, query: str, version: int) -> dict[str, Any]:
    """A query's ledger."""
    text = (folder.root / f"store/queries/{query}/v{version}/ledger.json").read_text()
    return dict(json.loads(text))


def refused(folder: ProjectFolder, **wishes: Any) -> tuple[str, str]:
    """The code and place of the one finding that refuses a run."""
    with pytest.raises(FindingsError) as caught:
        folder.run(**wishes)
    (finding,) = caught.value.findings
    return finding.code, str(finding.location)


def test_a_changed_stateful_query_is_refused(sums: ProjectFolder) -> None:
    """Spark would accept sum(amount * 1000) on the state of sum(amount); sqlstream does not, and nothing is touched."""
    before = sums.committed("sums")
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    assert refused(sums) == ("state-change", "models/sums.sql:1:1")
    assert sums.committed("sums") == before


def test_a_cosmetic_change_resumes(sums: ProjectFolder) -> None:
    """Comments, white space and the case of keywords change nothing."""
    cosmetic = SUMS.format(aggregate="SUM( amount )  -- the sum\n").replace("select", "SELECT")
    sums.write({"models/sums.sql": cosmetic})

    assert sums.result().rows_in == 5


def test_an_accepted_change_resumes_and_is_written_down(sums: ProjectFolder) -> None:
    """`--accept-state-change` goes on with the old state, once: the ledger then holds the new SQL."""
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    assert sums.result(accept_state_change=("sums",)).rows_in == 5

    written = ledger(sums, "sums", 1)
    assert "1000" in written["identity"]["models"]["sums"]
    assert written["accepted"][0]["changes"] == ["the SQL of `sums` changed"]
    assert sums.result().rows_in == 0


def test_a_full_refresh_starts_over_and_keeps_the_old(sums: ProjectFolder, read_parquet: Rows) -> None:
    """A new checkpoint and a new output folder; the old ones stay as they were, byte for byte."""
    old = sorted(path.read_bytes() for path in (sums.root / "store/sums").rglob("*.parquet"))
    sums.write({"models/sums.sql": SUMS.format(aggregate="sum(amount * 1000)")})

    result = sums.result(full_refresh=("sums",))

    assert result.output == str(sums.root / "store/sums.v2")
    assert [row["total"] for row in read_parquet(sums.root / "store/sums.v2")] == [10000]
    assert sorted(path.read_bytes() for path in (sums.root / "store/sums").rglob("*.parquet")) == old
    assert ledger(sums, "sums", 2)["reason"] == "refresh"
    assert sums.result().output == str(sums.root / "store/sums.v2")


def test_a_changed_stateless_query_resumes(orders: ProjectFolder, read_parquet: Rows) -> None:
    """A filter of a query without state may change; what was written stays."""
    model = "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }} where amount > "
    orders.write({"models/big.sql": model + "3"})
    orders.result()
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    orders.write({"models/big.sql": model + "2"})

    orders.result()

    assert sorted(row["id"] for row in read_parquet(orders.root / "store/big")) == [4, 14, 23, 24]


def test_a_change_in_a_view_below_counts(orders: ProjectFolder) -> None:
    """The identity of a query is all of the SQL that it is made of."""
    orders.write(
        {
            "models/positive.sql": "select * from {{ source('shop', 'orders') }} where amount > 0",
            "models/sums.sql": SUMS.format(aggregate="sum(amount)").replace(
                "source('shop', 'orders')", "ref('positive')"
            ),
        }
    )
    orders.result()
    orders.write({"models/positive.sql": "select * from {{ source('shop', 'orders') }} where amount > 1"})

    assert refused(orders) == ("state-change", "models/sums.sql:1:1")


def test_a_checkpoint_without_a_readable_ledger_is_refused(sums: ProjectFolder) -> None:
    """Torn or missing, nobody can tell what the checkpoint means."""
    path = sums.root / "store/queries/sums/v1/ledger.json"
    text = path.read_text()
    path.write_text(text[: len(text) // 2])
    assert refused(sums) == ("ledger-unreadable", "models/sums.sql:1:1")
    path.unlink()
    assert refused(sums) == ("ledger-unreadable", "models/sums.sql:1:1")


def test_a_failed_first_start_leaves_nothing_to_refuse(orders: ProjectFolder) -> None:
    """A ledger without a batch is no promise: after a mend of the SQL the query simply starts."""
    orders.write({"models/sums.sql": SUMS.format(aggregate="sum(amount)"), "store/sums": "a file in the way"})
    orders.run()
    (orders.root / "store/sums").unlink()
    orders.write({"models/sums.sql": SUMS.format(aggregate="max(amount)")})

    assert orders.result().rows_in == 10


def test_frozen_settings_stay_those_of_the_checkpoint(sums: ProjectFolder) -> None:
    """Another number of shuffle partitions in the target does not reach a query that has state."""
    project = (
        (sums.root / "project.yml")
        .read_text()
        .replace("storage: store", "storage: store, spark: {spark.sql.shuffle.partitions: 7}")
    )
    sums.write({"project.yml": project})

    sums.result()

    assert ledger(sums, "sums", 1)["identity"]["settings"]["spark.sql.shuffle.partitions"] == "2"


def test_another_time_zone_under_state_is_refused(sums: ProjectFolder) -> None:
    """A date key would mean other days."""
    project = (
        (sums.root / "project.yml")
        .read_text()
        .replace("storage: store", "storage: store, spark: {spark.sql.session.timeZone: Europe/Berlin}")
    )
    sums.write({"project.yml": project})

    assert refused(sums) == ("state-change", "models/sums.sql:1:1")


@pytest.mark.smoke
def test_a_memory_query_has_a_fresh_checkpoint_on_each_run(orders: ProjectFolder) -> None:
    """Spark cannot restart it, so each run reads all files again, and says so once."""
    orders.write({"models/shown.sql": "{{ config(sink='table') }} select id from {{ source('shop', 'orders') }}"})

    for _ in range(2):
        assert orders.result().rows_out == 10
        notices = [event.text for event in orders.events if isinstance(event, Notice)]
        assert len(notices) == 1
        assert "fresh checkpoint" in notices[0]
    (shown,) = [event for event in orders.events if isinstance(event, TableShown)]
    assert shown.count == 10
