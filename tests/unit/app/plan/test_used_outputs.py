"""A plan without Spark finds the batches of another checkpoint in local outputs, as a run does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.project.databases.sqlite import SQLITE
from sqlstream.project.databases.statements import BatchRecord
from sqlstream.state.verdicts import Verdict

FILES = {
    "project.yml": "name: shop\ndefault_target: local\ntargets: {local: {storage: store, master: 'local[1]'}}\n",
    "sources.yml": "sources: [{name: shop, tables: [{name: orders, format: json, path: in, schema: 'id int'}]}]\n",
    "sinks.yml": "sinks:\n- {name: lake, format: parquet, path: all}\n- {name: file, format: sqlite, path: all.sqlite}\n"
    "- {name: server, format: jdbc, options: {url: 'jdbc:postgresql://nowhere/shop', dbtable: orders}}\n",
}
OLD_RECORDS = (
    "CREATE TABLE _sqlstream_batches (query_id text primary key, batch_id bigint, model text, applied_at text)"
)


def planned(folder: Path, config: str, select: str = "id") -> tuple[Verdict, list[str]]:
    """Returns the verdict on a new query, and the codes of its findings."""
    model = f"{{{{ config({config}) }}}} select {select} from {{{{ source('shop', 'orders') }}}}"
    for name, text in {**FILES, "models/orders.sql": model}.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    query = next(
        each for each in plan_project(PlanRequest(ProjectRequest(folder, env={}))).queries if each.model == "orders"
    )
    return query.verdict, [finding.code for finding in query.findings]


NEW: tuple[Verdict, list[str]] = (Verdict.NEW, [])
USED = (Verdict.REFUSE, ["output-not-empty"])


def test_a_log_of_another_checkpoint_refuses_the_folder(tmp_path: Path) -> None:
    """Files without a log of Spark's sink are those of something else."""
    log = tmp_path / "store/all/_spark_metadata"
    log.mkdir(parents=True)
    assert planned(tmp_path, "sink='lake', checkpoint='new'") == NEW
    (log / "0").write_text("v1\n")
    assert planned(tmp_path, "sink='lake', checkpoint='new'") == USED


def test_a_folder_that_is_no_snapshot_is_refused(tmp_path: Path) -> None:
    """A query in complete mode replaces a snapshot, and nothing else."""
    config, count = "sink='lake', output_mode='complete'", "count(*) as n"
    (tmp_path / "store/all").mkdir(parents=True)
    assert planned(tmp_path, config, count) == USED
    (tmp_path / "store/all/_snapshot").write_text("1")
    assert planned(tmp_path, config, count) == NEW


@pytest.mark.parametrize(
    ("changes", "is_used"),
    [
        (["INSERT INTO {records} VALUES ('other', 3, 'orders', '')"], True),
        (["INSERT INTO {records} VALUES ('other', 3, 'orders', '')", 'DELETE FROM "orders"'], False),
        (["INSERT INTO {records} VALUES ('other', 3, 'orders', '')", 'DROP TABLE "orders"'], False),
        (["INSERT INTO {records} VALUES ('other', -1, 'orders', '')"], False),
        (["INSERT INTO {records} VALUES ('other', 3, 'another', '')"], False),
        (["{add}", "INSERT INTO {records} VALUES ('other', 3, 'renamed', '', 'orders')"], True),
        (["{add}", "INSERT INTO {records} VALUES ('other', 3, 'orders', '', 'orders_of_another_target')"], False),
        (["{add}", "INSERT INTO {records} VALUES ('other', 3, 'orders', '', NULL)"], True),
        (["DROP TABLE {records}"], False),
        ([], False),
    ],
)
def test_records_of_another_checkpoint_refuse_the_table(tmp_path: Path, changes: list[str], *, is_used: bool) -> None:
    """Records count for the table that they name, and early ones by the model. An empty table may be filled again."""
    (tmp_path / "store").mkdir()
    record = BatchRecord(SQLITE, "")
    with closing(sqlite3.connect(tmp_path / "store/all.sqlite")) as connection:
        for statement in ('CREATE TABLE "orders" (id int)', 'INSERT INTO "orders" VALUES (1)', OLD_RECORDS, *changes):
            connection.execute(statement.format(records=record.table, add=record.add_output))
        connection.commit()

    assert planned(tmp_path, "sink='file', checkpoint='new'") == (USED if is_used else NEW)
    complete = planned(tmp_path, "sink='file', output_mode='complete'", "count(*) as id")
    assert complete == NEW  # it replaces all rows


def test_a_server_leaves_a_moved_checkpoint_undecided(tmp_path: Path) -> None:
    """Only Spark can ask a server; a query that was never moved, as far as storage shows, is new."""
    assert planned(tmp_path, "sink='server'") == NEW
    assert planned(tmp_path, "sink='server', checkpoint='new'") == (Verdict.UNDECIDED, [])
    (tmp_path / "store/queries/renamed/v1").mkdir(parents=True)
    assert planned(tmp_path, "sink='server'") == (Verdict.UNDECIDED, [])


def test_a_file_that_is_no_database_is_undecided(tmp_path: Path) -> None:
    """A table that cannot be read decides nothing."""
    (tmp_path / "store").mkdir()
    (tmp_path / "store/all.sqlite").write_text("something else " * 100)
    assert planned(tmp_path, "sink='file'") == (Verdict.UNDECIDED, [])
