"""`sqlstream maintain` on tables of Delta Lake and Iceberg: fewer files, the same rows, and each batch still once."""

from __future__ import annotations

import json
import shutil
from typing import Any

import pytest

from sqlstream.spark.writing.table_formats import maintenance
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, forget_last_commit, lake_session, rows

ORDERS = "from {{ source('shop', 'orders') }}"
MODELS = {
    "appended": f"{{{{ config(sink='FORMAT') }}}} select kind, id, amount {ORDERS}",
    "merged": "{{ config(sink='FORMAT', output_mode='update', unique_key='kind') }}\n"
    f"select sum(amount) as total, kind {ORDERS} group by kind",
}
NAMES = [f"{name}_{each}" for name in MODELS for each in FORMATS]


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """A project with queries that have written several batches to tables."""
    folder.write({"sinks.yml": SINKS})
    for each in FORMATS:
        folder.write({f"models/{name}_{each}.sql": sql.replace("FORMAT", each) for name, sql in MODELS.items()})
    for number in range(4):
        orders = [{"id": 10 * number + i, "kind": kind, "amount": i} for i, kind in enumerate("abc")]
        folder.rows(f"in/orders/{number}.json", orders, modified=number)
    assert folder.run().succeeded
    return folder


def contents(folder: ProjectFolder) -> dict[str, list[Any]]:
    """Returns the rows of each table."""
    with lake_session(folder) as session:
        return {name: rows(session, folder, name.partition("_")[2], name) for name in NAMES}


def maintain(folder: ProjectFolder, *arguments: str) -> dict[str, dict[str, Any]]:
    """Returns what was done to the table of each model."""
    done = folder.invoke("maintain", "--output", "json", *arguments)
    assert done.code == 0, done.out + done.err
    return {sink["model"]: sink for sink in json.loads(done.out)["sinks"]}


def test_tables_keep_their_rows_and_their_batches(lake: ProjectFolder) -> None:
    """Merging and expiring change no row. A batch that the checkpoint has forgotten is found in the table, although the
    merge has made newer snapshots, and is not written again.
    """
    before = contents(lake)
    looked = maintain(lake, "--dry-run")
    assert all(sink["before"] == sink["after"] for sink in looked.values())

    done = maintain(lake)
    iceberg = maintain(lake, "-s", "appended_iceberg merged_iceberg", "--retain", "1 millisecond")

    assert done.keys() == {*NAMES}
    for name in ("appended_delta", "appended_iceberg"):
        assert done[name]["before"]["files"] > done[name]["after"]["files"] == 1
    for sink in iceberg.values():
        assert sink["done"][2].startswith("expire_snapshots removed ")
        assert sink["done"][2] != "expire_snapshots removed 0 snapshots"
        assert sink["done"][3].startswith("snapshots since the last batch of each query stay")
    assert contents(lake) == before

    for name in NAMES:
        forget_last_commit(lake, name)
    assert lake.run().succeeded
    assert contents(lake) == before

    lake.rows("in/orders/9.json", [{"id": 99, "kind": "a", "amount": 100}], modified=9)
    assert lake.run().succeeded
    after = contents(lake)
    for each in FORMATS:
        assert len(after[f"appended_{each}"]) == len(before[f"appended_{each}"]) + 1
        assert (100, "a") in after[f"merged_{each}"]


def test_a_query_that_is_gone_holds_back_snapshots_for_a_while(
    lake: ProjectFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Snapshots of a query without a checkpoint stay for 30 days after its last batch, and then they expire. Those of
    the query that replaced it stay.
    """
    before = contents(lake)
    shutil.move(lake.root / "store/queries/appended_iceberg", lake.root / "gone")
    lake.rows("in/orders/9.json", [{"id": 99, "kind": "a", "amount": 100}], modified=9)
    assert lake.run("appended_iceberg", accept_state_change=("appended_iceberg",)).succeeded

    def expired() -> list[str]:
        done: list[str] = maintain(lake, "-s", "appended_iceberg", "--retain", "1 millisecond")["appended_iceberg"][
            "done"
        ]
        return done[2:]

    kept = expired()
    monkeypatch.setattr(maintenance, "GONE_SECONDS", 0.0)
    ended = expired()

    assert kept[1:] == ["snapshots since the last batch of each query stay: they say which batches the table has"]
    assert ended[1:] == [
        *kept[1:],
        "the snapshots of 1 query without a checkpoint do not count: the last batch is older than 30 days",
    ]
    assert ended[0] != "expire_snapshots removed 0 snapshots"
    forget_last_commit(lake, "appended_iceberg")
    assert lake.run("appended_iceberg").succeeded
    added = contents(lake)["appended_iceberg"]
    assert len(added) == 2 * len(before["appended_iceberg"]) + 1


def test_delta_keeps_unused_files_for_its_own_time(lake: ProjectFolder) -> None:
    """A time below the limit of Delta's safety check has no effect on VACUUM, and the command says so."""
    files = set((lake.root / "store/appended_delta").glob("part-*"))
    done = maintain(lake, "-s", "appended_delta", "--retain", "1h")["appended_delta"]["done"]
    assert done[1] == "VACUUM uses the retention of the table, because less than 7 days can disturb readers"
    assert files < set((lake.root / "store/appended_delta").glob("part-*"))


def test_a_table_that_must_keep_its_snapshots(lake: ProjectFolder) -> None:
    """What Spark refuses is a finding at the sink, and the rows stay."""
    with lake_session(lake) as session:
        session.sql("ALTER TABLE files.`appended_iceberg` SET TBLPROPERTIES ('gc.enabled' = 'false')")
    refused = lake.invoke("maintain", "--output", "json", "-s", "appended_iceberg")
    (finding,) = json.loads(refused.out)["findings"]
    assert (refused.code, finding["code"]) == (1, "cannot-maintain")
    assert (
        finding["why"]
        == "Spark reports: Cannot expire snapshots: GC is disabled (deleting files may corrupt other tables)"
    )
    with lake_session(lake) as session:
        assert len(rows(session, lake, "iceberg", "appended_iceberg")) == 12
