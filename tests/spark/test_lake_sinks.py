"""Queries into Delta Lake and Iceberg: appended, merged, deleted and replaced rows, each batch once."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.versions.switch import promote, roll_back
from sqlstream.errors import FindingsError
from sqlstream.state.runs.events import Notice
from tests.spark.conftest import ProjectFolder
from tests.support.lake_tables import FORMATS, SINKS, commits, forget_last_commit, lake_session, rows

pytestmark = pytest.mark.smoke

ORDERS = "from {{ source('shop', 'orders') }}"
MODELS = {
    "appended": f"{{{{ config(sink='FORMAT', partition_by='kind') }}}} select kind, id {ORDERS}",
    "merged": "{{ config(sink='FORMAT', output_mode='update', unique_key='kind') }}\n"
    f"select sum(amount) as total, kind {ORDERS} group by kind",
    "deleted": "{{ config(sink='FORMAT', unique_key=['id'], delete_when='amount < 0', sequence_by='step') }}\n"
    f"select id, kind, amount, abs(coalesce(amount, 0)) as step {ORDERS}",
    "replaced": f"{{{{ config(sink='FORMAT', output_mode='complete') }}}} select kind, count(*) as orders {ORDERS} "
    "group by kind",
}


CATALOG = """\
name: shop
targets:
  local:
    master: local[2]
    storage: store
    spark:
      spark.sql.catalog.prod: org.apache.iceberg.spark.SparkCatalog
      spark.sql.catalog.prod.type: hadoop
      spark.sql.catalog.prod.warehouse: {warehouse}
"""
NAMED = """\
sinks:
  - {name: delta, format: delta, path: "{{ model.name }}"}
  - {name: iceberg, format: iceberg, table: "prod.gold.{{ model.name }}"}
"""
PLACES = {"delta": ("delta_ids.v1", "delta_ids.v2"), "iceberg": ("gold/iceberg_ids", "gold/iceberg_ids_v2")}
"""The folders of the two versions of a table, in the storage."""


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """A project with one query of each kind into each format, and two files of orders."""
    folder.write({"sinks.yml": SINKS})
    for each in FORMATS:
        folder.write({f"models/{name}_{each}.sql": sql.replace("FORMAT", each) for name, sql in MODELS.items()})
    first = [{"id": 1, "kind": "a", "amount": 1}, {"id": 2, "kind": "b", "amount": 2}]
    second = [{"id": 1, "kind": "a", "amount": 10}, {"id": 2, "kind": "b", "amount": -3}, {"id": 3, "kind": "c"}]
    for number, orders in enumerate((first, second)):
        folder.rows(f"in/orders/{number}.json", orders, modified=number)
    return folder


def test_each_batch_changes_the_tables_once(lake: ProjectFolder) -> None:
    """After a kill between the commit of a table and that of the checkpoint, the repeated batch changes nothing. Of
    several rows with a key, `sequence_by` decides.
    """
    assert lake.run().succeeded
    for each in FORMATS:
        for name in MODELS:
            forget_last_commit(lake, f"{name}_{each}")
    third: list[dict[str, Any]] = [
        {"id": 4, "kind": "a", "amount": 100},
        {"id": 4, "kind": "z", "amount": 50},
        {"id": 1, "amount": -20},
    ]
    lake.rows("in/orders/2.json", third, modified=2)
    assert lake.run().succeeded

    with lake_session(lake) as session:
        for each in FORMATS:
            found = {name: rows(session, lake, each, f"{name}_{each}") for name in MODELS}
            assert found == {
                "appended": [*[("a", 1)] * 2, ("a", 4), *[("b", 2)] * 2, ("c", 3), ("z", 4), (None, 1)],
                "merged": [(-1, "b"), (-20, None), (111, "a"), (50, "z"), (None, "c")],
                "deleted": [(3, "c", None, 0), (4, "a", 100, 100)],
                "replaced": [("a", 3), ("b", 2), ("c", 1), ("z", 1), (None, 1)],
            }
            assert [commits(session, lake, each, f"{name}_{each}") for name in MODELS] == [3, 3, 3, 3]


def test_one_query_writes_to_both_formats(lake: ProjectFolder) -> None:
    """With `fan_out: shared` each table has each batch once too, also one that Spark repeats."""
    sinks = "".join(f"  - {{name: {each}, format: {each}, path: '{each}_{{{{ model.name }}}}'}}\n" for each in FORMATS)
    shared = {name: sql.replace("'FORMAT'", f"{list(FORMATS)}, fan_out='shared'") for name, sql in MODELS.items()}
    lake.write({"sinks.yml": f"sinks:\n{sinks}", **{f"models/{name}.sql": sql for name, sql in shared.items()}})
    assert lake.run(*MODELS).succeeded
    for name in MODELS:
        forget_last_commit(lake, name)
    lake.rows("in/orders/2.json", [{"id": 4, "kind": "a", "amount": 100}], modified=2)
    assert lake.run(*MODELS).succeeded

    with lake_session(lake) as session:
        for each in FORMATS:
            found = {name: rows(session, lake, each, f"{each}_{name}") for name in MODELS}
            assert found == {
                "appended": [*[("a", 1)] * 2, ("a", 4), *[("b", 2)] * 2, ("c", 3)],
                "merged": [(-1, "b"), (111, "a"), (None, "c")],
                "deleted": [(1, "a", 10, 10), (3, "c", None, 0), (4, "a", 100, 100)],
                "replaced": [("a", 3), ("b", 2), ("c", 1)],
            }
            assert [commits(session, lake, each, f"{each}_{name}") for name in MODELS] == [3, 3, 3, 3]


def test_a_table_gets_the_new_columns_of_a_changed_model(folder: ProjectFolder) -> None:
    """A new column is added and said; a type that the table cannot hold is refused until a full refresh. The Iceberg
    table has a name in a catalog of the user.
    """
    model = "{{{{ config(sink='{}') }}}} select {} from {{{{ source('shop', 'orders') }}}}"
    folder.write({"project.yml": CATALOG.format(warehouse=folder.root / "store"), "sinks.yml": NAMED})
    folder.write({f"models/{each}_ids.sql": model.format(each, "id") for each in FORMATS})
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a"}], modified=0)
    assert folder.run().succeeded

    folder.rows("in/orders/1.json", [{"id": 2, "kind": "b"}], modified=1)
    folder.write({f"models/{each}_ids.sql": model.format(each, "kind, cast(id as smallint) as id") for each in FORMATS})
    assert folder.run().succeeded
    notices = [event.text for event in folder.events if isinstance(event, Notice) and "is new" in event.text]
    folder.write({f"models/{each}_ids.sql": model.format(each, "kind, id, struct(id) as s") for each in FORMATS})
    assert folder.run().succeeded
    folder.write({f"models/{each}_ids.sql": model.format(each, "cast(id as string) as id") for each in FORMATS})
    with pytest.raises(FindingsError) as refused:
        folder.run()
    assert folder.run(full_refresh=True).succeeded

    assert len(notices) == 2
    assert {finding.code for finding in refused.value.findings} == {"output-columns"}
    with lake_session(folder) as session:
        for each in FORMATS:
            place, version_2 = PLACES[each]
            assert rows(session, folder, each, place) == [(1, None, None), (2, "b", None)]
            assert rows(session, folder, each, version_2) == [("1",), ("2",)]
        old, new = [(1, None, None), (2, "b", None)], [("1",), ("2",)]
        for switch, expected in ((None, new), (roll_back, old), (promote, new)):
            if switch is not None:
                switch(ProjectRequest(folder.root), "delta_ids")
            assert rows(session, folder, "delta", "delta_ids") == expected  # also with the log of before in memory


def test_a_batch_model_replaces_its_table(folder: ProjectFolder) -> None:
    """Each run writes all rows in one commit, also with other columns and partitions."""
    folder.write({"sinks.yml": SINKS, "seeds/kinds.csv": "kind,amount\na,1\nb,2\n"})
    model = "{{{{ config(sink='{}'{}) }}}} select {} from {{{{ ref('kinds') }}}}"
    folder.write({f"models/{each}_kinds.sql": model.format(each, "", "*") for each in FORMATS})
    assert folder.run().succeeded
    changed = ("partition_by='kind', unique_key='kind', delete_when=\"kind = 'b'\"", "kind, 'x' as name")
    folder.write({f"models/{each}_kinds.sql": model.format(each, ", " + changed[0], changed[1]) for each in FORMATS})
    assert folder.run().succeeded

    with lake_session(folder) as session:
        for each in FORMATS:
            assert rows(session, folder, each, f"{each}_kinds") == [("a", "x")]
            assert commits(session, folder, each, f"{each}_kinds") == 2


def test_a_repeated_key_ends_the_query(folder: ProjectFolder) -> None:
    """The query ends at once, the finding names the key, and the table keeps its rows; a table that a user made keeps its other columns."""
    keyed = "{{ config(sink='FORMAT', unique_key='id') }} select id, kind from {{ source('shop', 'orders') }}"
    folder.write({"sinks.yml": SINKS} | {f"models/{each}_ids.sql": keyed.replace("FORMAT", each) for each in FORMATS})
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a"}], modified=0)
    folder.rows("in/orders/1.json", [{"id": 2, "kind": "b"}, {"id": 2, "kind": "c"}], modified=1)

    results = folder.run().results

    assert [result.restarts for result in results] == [0, 0]
    whys = [result.finding.why for result in results if result.finding is not None]
    assert len(whys) == 2
    assert all('2 rows of the batch have the same unique_key {"id":2}' in why for why in whys)
    with lake_session(folder) as session:
        assert [rows(session, folder, each, f"{each}_ids") for each in FORMATS] == [[(1, "a")]] * 2


def test_an_upsert_refuses_stale_columns_and_lost_tables(folder: ProjectFolder) -> None:
    """A renamed column is refused until the query writes the old one again, or the table no longer has it; a removed
    table is refused, by `plan --check` and `run` alike, and by `plan` if its folder is local.
    """
    model = "{{{{ config(sink='{}', unique_key='id') }}}} select {} from {{{{ source('shop', 'orders') }}}}"

    def write(columns: str) -> None:
        folder.write({"sinks.yml": SINKS} | {f"models/{each}_ids.sql": model.format(each, columns) for each in FORMATS})

    def planned(*, check: bool) -> set[tuple[str, str]]:
        found = plan_project(PlanRequest(ProjectRequest(folder.root, env=os.environ), check=check)).queries
        return {(str(each.verdict), finding.code) for each in found for finding in each.findings}

    def refused() -> set[str]:
        with pytest.raises(FindingsError) as caught:
            folder.run()
        assert len(caught.value.findings) == len(FORMATS)
        return {finding.code for finding in caught.value.findings}

    write("id, kind")
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a"}, {"id": 2, "kind": "b"}], modified=0)
    assert folder.run().succeeded
    write("id, upper(kind) as sort")
    folder.rows("in/orders/1.json", [{"id": 1, "kind": "c"}], modified=1)
    assert planned(check=True) == {("rebuild", "output-columns")}
    assert refused() == {"output-columns"}
    write("id, upper(kind) as sort, cast(null as string) as kind")
    assert folder.run().succeeded
    with lake_session(folder) as session:
        for each in FORMATS:
            found = rows(session, folder, each, f"{each}_ids", "id", "kind", "sort")
            assert found == [(1, None, "C"), (2, "b", None)]

    for each in FORMATS:
        shutil.rmtree(folder.root / f"store/{each}_ids")
    lost = {("refuse", "output-lost")}
    assert planned(check=False) == planned(check=True) == lost
    assert refused() == {"output-lost"}
    assert folder.run(full_refresh=True).succeeded


@pytest.mark.slow
@pytest.mark.parametrize(
    "config",
    ["sink='delta'", "sink='delta', unique_key='id'", "sink=['delta', 'more'], fan_out='shared'"],
    ids=["append", "merge", "shared"],
)
def test_a_new_table_of_delta_lake_allows_no_null(folder: ProjectFolder, config: str) -> None:
    """A `not_null` column of a contract is NOT NULL in the table, to which Spark's writer and MERGE add rows."""
    folder.write(
        {
            "sinks.yml": SINKS + "  - {name: more, format: noop}\n",
            "models/all.sql": f"{{{{ config({config}) }}}} select id, kind {ORDERS}",
            "models/_all.yml": "models:\n  - name: all\n    config: {contract: {enforced: true}}\n    columns:\n"
            "      - {name: id, data_type: int, constraints: [{type: not_null}]}\n"
            "      - {name: kind, data_type: string}\n",
        }
    )
    folder.rows("in/orders/0.json", [{"id": 1, "kind": "a"}, {"id": 2}])

    assert folder.run().succeeded
    with lake_session(folder) as session:
        schema = session.read.format("delta").load(str(folder.root / "store/all")).schema
        assert [(field.name, field.nullable) for field in schema] == [("id", False), ("kind", True)]
        assert rows(session, folder, "delta", "all") == [(1, "a"), (2, None)]
    folder.rows("in/orders/1.json", [{"kind": "c"}])
    (result,) = folder.run().results
    assert result.finding is not None
    assert "allows no null in `id`" in result.finding.why
