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
from sqlstream.state.ledger import EVOLUTION

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


def test_rows_without_those_of_a_table_keep_state(orders: ProjectFolder) -> None:
    """Spark plans EXCEPT as an aggregation, so a change to it is refused like that of any other."""
    model = "{{{{ config(sink='nowhere', output_mode='update') }}}} select {} from {{{{ source('shop', 'orders') }}}} except select 'b' from range(1)"
    orders.write({"models/kinds.sql": model.format("kind")})
    orders.result()
    orders.write({"models/kinds.sql": model.format("upper(kind)")})

    assert refused(orders) == ("state-change", "models/kinds.sql:1:1")


def test_a_renamed_query_goes_on_where_it_was(orders: ProjectFolder, read_parquet: Rows) -> None:
    """`previous_name` keeps the checkpoint, and with it the output whose path is named after the model."""
    model = "{{{{ config(sink='lake'{}) }}}} select id from {{{{ source('shop', 'orders') }}}}"
    orders.write({"models/before.sql": model.format("")})
    orders.result()
    (orders.root / "models/before.sql").unlink()
    orders.write({"models/after.sql": model.format(", previous_name='before'")})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    result = orders.result()

    assert (result.model, result.rows_in) == ("after", 5)
    assert len(read_parquet(orders.root / "store/before")) == 15


def test_what_a_changed_query_goes_on_with_is_said(orders: ProjectFolder) -> None:
    """A stateless query may change; the run says once that it has."""
    model = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/all.sql": model})
    orders.result()
    orders.write({"models/all.sql": f"{model} where id > 1"})
    said = []
    for _ in range(2):
        orders.result()
        said.append([event.text for event in orders.events if isinstance(event, Notice)])

    assert [len(texts) for texts in said] == [1, 0]
    assert "the SQL of `all` changed" in said[0][0]


def test_a_fresh_checkpoint_has_the_settings_of_today(orders: ProjectFolder) -> None:
    """What an older version of a query that Spark cannot restart was frozen with does not live on."""
    orders.write({"models/shown.sql": "{{ config(sink='table') }} select id from {{ source('shop', 'orders') }}"})
    orders.result()
    project = orders.root / "project.yml"
    project.write_text(project.read_text().replace("store}", "store, spark: {spark.sql.shuffle.partitions: 7}}"))

    orders.result()

    settings = ledger(orders, "shown", 2)["identity"]["settings"]
    assert settings["spark.sql.shuffle.partitions"] == "7"


@pytest.mark.parametrize("storage", ["nofs://bucket/x", "s3a://bucket/x", "/dev/null/x"])
def test_storage_that_cannot_be_reached_is_a_finding(orders: ProjectFolder, storage: str) -> None:
    """A scheme that Spark has no file system for, one whose package is missing, and a file where a folder should be."""
    orders.write(
        {
            "models/all.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}",
            "project.yml": f"name: shop\ntargets:\n  local: {{storage: '{storage}'}}\n",
        }
    )

    assert refused(orders) == ("storage-unusable", "project.yml:3:3")


@pytest.mark.parametrize("prefix", ["", "file:", "file://"])
def test_storage_may_lie_under_any_local_path(orders: ProjectFolder, prefix: str) -> None:
    """Spaces, letters outside ASCII and `%20` stand for themselves, in a path and in a URI: one folder has it all."""
    storage = orders.root / "ein Ordner é%20x"
    orders.write(
        {
            "models/all.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}",
            "project.yml": f"name: shop\ntargets: {{local: {{storage: '{prefix}{storage}'}}}}\n",
        }
    )

    assert [orders.result().rows_in, orders.result().rows_in] == [10, 0]
    assert {path.name for path in storage.iterdir()} >= {"all", "queries"}
    assert {path.name for path in (storage / "queries/all/v1").iterdir()} == {"checkpoint", "ledger.json"}


@pytest.mark.smoke
def test_named_sources_need_a_spark_that_can_name_them(orders: ProjectFolder) -> None:
    """A checkpoint from Spark 4.3 is refused by an older one, which would find its sources by their order."""
    orders.write({"models/all.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}"})
    orders.result()
    written = ledger(orders, "all", 1)
    can_name = written["identity"]["settings"][EVOLUTION] == "true"
    written["identity"]["settings"][EVOLUTION] = "true"
    orders.write({"store/queries/all/v1/ledger.json": json.dumps(written)})

    if can_name:
        assert orders.result().rows_in == 0
    else:
        assert refused(orders) == ("unsupported-version", "models/all.sql:1:1")
