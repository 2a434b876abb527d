"""A query does not continue into an output that lacks its earlier batches: dropped, removed, replaced or an older copy."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.versions.switch import promote
from sqlstream.errors import FindingsError
from sqlstream.state.verdicts import Verdict
from tests.spark.conftest import ProjectFolder, order_rows

SINKS = (
    "sinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
    "  - {name: copy, format: json, path: 'copy_{{ model.name }}'}\n"
    "  - {name: file, format: sqlite, path: '{{ model.name }}.sqlite'}\n"
)
SELECT = "select id, kind from {{ source('shop', 'orders') }}"
SUMS = "select kind, count(*) as n from {{ source('shop', 'orders') }} group by kind"
MODELS = {
    "added": f"{{{{ config(sink='lake') }}}} {SELECT}",
    "keyed": f"{{{{ config(sink='file', unique_key='id') }}}} {SELECT}",
    "sums": f"{{{{ config(sink='lake', output_mode='complete') }}}} {SUMS}",
    "both": f"{{{{ config(sink=['file', 'copy'], fan_out='shared') }}}} {SELECT}",
}


@pytest.fixture
def shop(orders: ProjectFolder) -> ProjectFolder:
    """A query of each kind that has committed two batches."""
    orders.write({"sinks.yml": SINKS, **{f"models/{name}.sql": sql for name, sql in MODELS.items()}})
    assert orders.run().succeeded
    orders.rows("in/orders/2.json", order_rows(2), modified=2)
    return orders


def refused(project: ProjectFolder) -> dict[str, str]:
    """Runs everything, and returns the code and file of each refusal by the model that its message names."""
    with pytest.raises(FindingsError) as caught:
        project.run()
    return {finding.message.split("`")[1]: finding.code for finding in caught.value.findings}


def planned(project: ProjectFolder, *, check: bool) -> dict[str, str]:
    """Returns the code of each query that `plan` refuses, empty for one that it does not."""
    found = plan_project(PlanRequest(ProjectRequest(project.root, env=os.environ), check=check))
    return {each.model: each.findings[0].code for each in found.queries if each.verdict is Verdict.REFUSE}


def statement(file: Path, sql: str) -> None:
    """Runs SQL in a SQLite file."""
    with sqlite3.connect(file) as connection:
        connection.execute(sql)


@pytest.mark.slow
def test_outputs_that_are_gone_are_refused(shop: ProjectFolder) -> None:
    """A removed folder, file or table is refused by `run` and `plan --check` alike, and by `plan` as far as local files
    show it; a full refresh is a way out, and nothing was written before.
    """
    store = shop.root / "store"
    shutil.rmtree(store / "added")
    (store / "sums").unlink()
    (store / "keyed.sqlite").unlink()
    statement(store / "both.sqlite", "drop table both")
    everything = dict.fromkeys(MODELS, "output-lost")

    assert planned(shop, check=False) == {name: code for name, code in everything.items() if name != "both"}
    assert planned(shop, check=True) == everything
    assert refused(shop) == everything
    assert not (store / "keyed.sqlite").exists()
    assert shop.run(full_refresh=True).succeeded
    shop.rows("in/orders/3.json", order_rows(3), modified=3)
    assert planned(shop, check=True) == {}
    assert shop.run().succeeded


@pytest.mark.slow
def test_older_and_newer_copies_are_refused(shop: ProjectFolder) -> None:
    """A log or record that ends before the last committed batch, or that a checkpoint from a backup does not know."""
    store = shop.root / "store"
    log = store / "added/_spark_metadata"
    (log / "1").rename(shop.root / "1")
    statement(store / "keyed.sqlite", "update _sqlstream_batches set batch_id = 0")
    statement(store / "both.sqlite", "delete from _sqlstream_batches")
    lost = dict.fromkeys(("added", "keyed", "both"), "output-lost")
    assert planned(shop, check=True) == lost
    assert refused(shop) == lost

    (shop.root / "1").rename(log / "1")
    (log / "0").rename(shop.root / "0")
    statement(store / "keyed.sqlite", "update _sqlstream_batches set batch_id = 3")
    statement(store / "both.sqlite", "drop table _sqlstream_batches")
    assert planned(shop, check=False) == {"added": "output-lost"}
    assert refused(shop) == lost

    (shop.root / "0").rename(log / "0")
    shutil.rmtree(store / "copy_both")
    assert planned(shop, check=False) == {"both": "output-lost"}


def test_the_record_of_a_restored_table_can_be_written(shop: ProjectFolder) -> None:
    """The fix has the statements that record the batches of a table that was restored without their record."""
    file = shop.root / "store/keyed.sqlite"
    statement(file, "drop table _sqlstream_batches")
    with pytest.raises(FindingsError) as caught:
        shop.run("keyed")
    statements = caught.value.findings[0].fix.split(" run ")[1].split("; or ")[0]
    for each in statements.split("; "):
        statement(file, each)

    assert shop.run("keyed").succeeded
    with sqlite3.connect(file) as connection:
        assert connection.execute("select count(*), count(distinct id) from keyed").fetchone() == (15, 15)


@pytest.mark.slow
def test_batches_without_rows_and_without_a_commit_are_no_loss(orders: ProjectFolder) -> None:
    """A query whose batches were all empty resumes, and so do one that has read nothing yet, one that was killed
    before its first commit, and one between the batch of the sink and that of the checkpoint.
    """
    orders.write({"sinks.yml": SINKS, **{f"models/{name}.sql": sql for name, sql in MODELS.items()}})
    empty = {f"models/{name}.sql": sql.replace("}} select", "}} --\nselect") for name, sql in MODELS.items()}
    source = (orders.root / "sources.yml").read_text()
    never = {name: sql.replace("{{ source('shop', 'orders') }}", "{{ ref('none') }}") for name, sql in empty.items()}
    orders.write({**never, "models/none.sql": "select * from {{ source('shop', 'orders') }} where id < 0"})
    orders.write({"sources.yml": source.replace("in/orders", "in/later")})
    (orders.root / "in/later").mkdir()
    assert orders.run().succeeded
    assert planned(orders, check=True) == {}
    for number in range(3):
        orders.rows(f"in/later/{number}.json", order_rows(number), modified=number)
        assert orders.run().succeeded
        assert planned(orders, check=False) == planned(orders, check=True) == {}

    for name in MODELS:
        (orders.root / f"store/queries/{name}/v1/checkpoint/commits/2").unlink()
    assert planned(orders, check=True) == {}
    assert orders.run().succeeded


@pytest.mark.slow
@pytest.mark.parametrize("lose", [shutil.rmtree, lambda path: shutil.rmtree(path / "_spark_metadata")])
def test_versions_are_checked_where_they_write(shop: ProjectFolder, lose: Callable[[Path], None]) -> None:
    """After a promotion the plain name shows another version: the folder and the table of the version count."""
    changed = {f"models/{name}.sql": MODELS[name].replace("id, kind", "id, upper(kind) as kind") for name in MODELS}
    shop.write({name: changed[name] for name in ("models/added.sql", "models/keyed.sql")})
    assert shop.run("added", "keyed", parallel=("added", "keyed")).succeeded
    for name in ("added", "keyed"):
        promote(ProjectRequest(shop.root, env=os.environ), name)
    shop.rows("in/orders/3.json", order_rows(3), modified=3)
    assert planned(shop, check=True) == planned(shop, check=False) == {}
    assert shop.run().succeeded

    store = shop.root / "store"
    lose(store / "added.v2")
    statement(store / "keyed.sqlite", "drop view keyed")
    statement(store / "keyed.sqlite", "drop table keyed_v2")
    assert planned(shop, check=False) == {"added": "output-lost"}
    lost = {"added": "output-lost", "keyed": "output-lost"}
    assert planned(shop, check=True) == lost
    assert refused(shop) == lost


@pytest.mark.slow
def test_a_table_with_batches_of_another_checkpoint_is_refused(orders: ProjectFolder) -> None:
    """A moved checkpoint would write all rows again. Its old name and a renamed table are ways out."""
    file = orders.root / "store/keyed.sqlite"

    def move(checkpoint: str) -> None:
        orders.write({"models/keyed.sql": f"{{{{ config(sink='file', checkpoint='{checkpoint}') }}}} {SELECT}"})

    orders.write({"sinks.yml": SINKS})
    move("one")
    assert orders.run().succeeded
    move("two")

    used = {"keyed": "output-not-empty"}
    assert planned(orders, check=False) == planned(orders, check=True) == refused(orders) == used
    move("one")
    assert orders.run().succeeded
    move("two")
    with pytest.raises(FindingsError) as caught:
        orders.run()
    way_out = next(part for part in caught.value.findings[0].fix.split("; or ") if "ALTER TABLE" in part)
    statement(file, way_out.partition(": ")[2])
    assert orders.run().succeeded
    with sqlite3.connect(file) as connection:
        counts = [connection.execute(f"select count(*) from {each}").fetchone() for each in ("keyed", "keyed_before")]
    assert counts == [(10,), (10,)]
