"""A new checkpoint over a table of Delta Lake or Iceberg that has the rows of another one: refused, as `plan` says."""

from __future__ import annotations

import os

import pytest

from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.errors import FindingsError
from sqlstream.state.verdicts import Verdict
from tests.spark.conftest import ProjectFolder, order_rows
from tests.support.lake_tables import FORMATS, SINKS, lake_session, rows

pytestmark = pytest.mark.smoke

READ = "from {{ source('shop', 'orders') }}"
MODELS = {
    "all": f"{{{{ config(sink='FORMAT'CHECKPOINT) }}}} select id {READ}",
    "keyed": f"{{{{ config(sink='FORMAT', unique_key='id'CHECKPOINT) }}}} select id {READ}",
    "counted": f"{{{{ config(sink='FORMAT', output_mode='complete'CHECKPOINT) }}}} select count(*) as id {READ}",
}
REFUSED = {f"{name}_{each}" for name in ("all", "keyed") for each in FORMATS}


@pytest.fixture
def lake(folder: ProjectFolder) -> ProjectFolder:
    """Tables of both formats with the rows of one file, whose queries then get another checkpoint."""
    folder.write({"sinks.yml": SINKS})
    folder.rows("in/orders/0.json", order_rows(1, 2), modified=0)
    write_models(folder, "")
    assert folder.run().succeeded
    write_models(folder, ", checkpoint='moved/MODEL'")
    return folder


def write_models(folder: ProjectFolder, checkpoint: str) -> None:
    """Writes each model for each format; `checkpoint` is added to its configuration."""
    for each in FORMATS:
        for name, sql in MODELS.items():
            model = sql.replace("FORMAT", each).replace("CHECKPOINT", checkpoint.replace("MODEL", f"{name}_{each}"))
            folder.write({f"models/{name}_{each}.sql": model})


def planned(folder: ProjectFolder, *, check: bool) -> dict[str, tuple[Verdict, tuple[str, ...]]]:
    """Returns the verdict on each query, and the codes of its findings."""
    found = plan_project(PlanRequest(ProjectRequest(folder.root, env=os.environ), check=check)).queries
    return {each.model: (each.verdict, tuple(finding.code for finding in each.findings)) for each in found}


def ids(folder: ProjectFolder, name: str) -> dict[str, list[int]]:
    """Returns the ids in the table of a model, by format."""
    with lake_session(folder) as session:
        return {each: [row[0] for row in rows(session, folder, each, f"{name}_{each}")] for each in FORMATS}


def refused(folder: ProjectFolder) -> dict[str, str]:
    """Runs everything, and returns the code of each refused query."""
    with pytest.raises(FindingsError) as caught:
        folder.run()
    return {finding.message.split("`")[1]: finding.code for finding in caught.value.findings}


def test_a_moved_checkpoint_is_refused_until_it_is_accepted(lake: ProjectFolder) -> None:
    """A query in complete mode replaces all rows, so it goes on. The others read everything again only if told."""
    checked, unchecked = planned(lake, check=True), planned(lake, check=False)
    assert checked == dict.fromkeys(REFUSED, (Verdict.REFUSE, ("output-not-empty",))) | {
        f"counted_{each}": (Verdict.NEW, ()) for each in FORMATS
    }
    assert unchecked == dict.fromkeys(REFUSED, (Verdict.UNDECIDED, ())) | {
        f"counted_{each}": (Verdict.NEW, ()) for each in FORMATS
    }
    assert refused(lake) == dict.fromkeys(REFUSED, "output-not-empty")

    assert lake.run(accept_state_change=("*",)).succeeded
    lake.rows("in/orders/1.json", order_rows(3), modified=1)
    assert lake.run().succeeded
    assert planned(lake, check=True) == dict.fromkeys(checked, (Verdict.UNCHANGED, ()))
    found = {name: ids(lake, name) for name in MODELS}
    assert {each: sorted(set(found["all"][each])) for each in FORMATS} == found["keyed"]
    assert len(found["all"]["delta"]) == 2 * len(found["keyed"]["delta"]) - len(order_rows(3))


def test_a_lost_ledger_is_found_in_old_commits(lake: ProjectFolder) -> None:
    """Without a checkpoint or a removed query that hints at it, and with queries that only the checkpoint of Delta's log
    names. A table whose rows are deleted, and one with rows from elsewhere, may be written.
    """
    write_models(lake, "")
    (lake.root / "store/queries").rename(lake.root / "elsewhere")
    with lake_session(lake) as session:
        for number in range(10):
            session.sql(f"insert into delta.`{lake.root}/store/all_delta` values ({100 + number})")
        for each in ("delta", "iceberg"):
            table = f"delta.`{lake.root}/store/keyed_delta`" if each == "delta" else "files.keyed_iceberg"
            session.sql(f"delete from {table}")
        session.sql(f"create table delta.`{lake.root}/store/new_delta` (id int) using delta")
        session.sql("create table files.new_iceberg (id int) using iceberg")
        for table in (f"delta.`{lake.root}/store/new_delta`", "files.new_iceberg"):
            session.sql(f"insert into {table} values (7)")
    log = lake.root / "store/all_delta/_delta_log"
    assert (log / "_last_checkpoint").exists()
    for commit in log.glob("0000000000000000000?.json"):
        commit.unlink()
    for each in FORMATS:
        lake.write({f"models/new_{each}.sql": MODELS["all"].replace("FORMAT", each).replace("CHECKPOINT", "")})

    assert refused(lake) == {f"all_{each}": "output-not-empty" for each in FORMATS}
    assert {name for name, found in planned(lake, check=False).items() if found[0] is Verdict.NEW} == {
        f"counted_{each}" for each in FORMATS
    }
    for each in FORMATS:
        (lake.root / f"models/all_{each}.sql").unlink()
    assert lake.run().succeeded
    assert len(ids(lake, "new")["delta"]) == len(ids(lake, "new")["iceberg"]) == len(ids(lake, "keyed")["delta"]) + 1
