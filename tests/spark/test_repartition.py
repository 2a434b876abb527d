"""`sqlstream state repartition`: the state of real queries moves to another number of partitions, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from sqlstream import FindingsError, UsageError
from sqlstream.app.plan.plan import plan_project
from sqlstream.app.request import PlanRequest, ProjectRequest
from sqlstream.app.state.files import repair_checkpoint
from sqlstream.app.state.repartition import repartition_query
from sqlstream.app.state.rows import state_size
from sqlstream.app.versions.switch import promote
from sqlstream.cli.main import cli
from sqlstream.state.runs.events import Notice
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = f"spark.sql.shuffle.partitions: 4, spark.sql.streaming.stateStore.providerClass: {ROCKSDB}"
TARGET = PROJECT.replace("storage: store", f"storage: store, spark: {{{SETTINGS}}}")

HOURS = """{{ config(sink='lake') }}
select /*+ WATERMARK(ts, '10 minutes') */ window.start as hour, id % 10 as digit, count(*) as n, sum(amount) as total
from {{ source('shop', 'orders') }}
group by window(ts, '1 hour'), id % 10
"""

ReadParquet = Callable[[Path], list[dict[str, Any]]]


@pytest.fixture
def hours(orders: ProjectFolder) -> ProjectFolder:
    """A project whose query `hours` has read two hours into RocksDB, with four partitions."""
    orders.write({"project.yml": TARGET, "models/hours.sql": HOURS})
    orders.run()
    return orders


def request(folder: ProjectFolder) -> ProjectRequest:
    """Returns the request for a project."""
    return ProjectRequest(folder.root, env=os.environ)


def checkpoint(folder: ProjectFolder) -> Path:
    """Returns the checkpoint of the query `hours`."""
    return folder.root / "store/queries/hours/v1/checkpoint"


def ledger(folder: ProjectFolder) -> dict[str, Any]:
    """Returns the ledger of the query `hours`."""
    found: dict[str, Any] = json.loads((checkpoint(folder).parent / "ledger.json").read_text())
    return found


def partitions(folder: ProjectFolder) -> str:
    """Returns the number of partitions in the ledger."""
    return str(ledger(folder)["identity"]["settings"]["spark.sql.shuffle.partitions"])


def read_on(folder: ProjectFolder, first: int, count: int) -> None:
    """Runs the query over further hours, one file each."""
    for number in range(first, first + count):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    folder.run()


def from_scratch(folder: ProjectFolder, root: Path, read: ReadParquet) -> list[dict[str, Any]]:
    """Returns the output of a new project over the same files."""
    other = ProjectFolder(root)
    shutil.copytree(folder.root, root, ignore=shutil.ignore_patterns("store", "target"))
    results = other.run().results
    assert [str(result.status) for result in results] == ["success"], results
    return ordered(read(root / "store/hours"))


def ordered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the rows in a fixed order."""
    return sorted(rows, key=lambda row: (row["hour"], row["digit"]))


def files_of(folder: Path) -> dict[str, bytes]:
    """Returns all files below a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_the_query_runs_on_with_more_partitions(
    hours: ProjectFolder, tmp_path_factory: pytest.TempPathFactory, read_parquet: ReadParquet
) -> None:
    """Spark adds a batch and changes no file. The output, over a compaction of its log, is that of a run from scratch,
    and readers of the log have it, too.
    """
    before = files_of(checkpoint(hours))

    done = repartition_query(request(hours), "hours", 7)

    after = files_of(checkpoint(hours))
    assert (done.before, done.after) == (4, 7)
    assert {name: after.get(name) for name in before} == before
    assert partitions(hours) == "7"
    assert ledger(hours)["history"][-1]["action"] == "repartition"
    assert repartition_query(request(hours), "hours", 7).before == 7
    (size,) = state_size(request(hours), "hours").stores
    assert sorted(size.bytes_on_disk) == list(range(7))

    for number in range(2, 9):
        read_on(hours, number, 1)
    assert any((hours.root / "store/hours/_spark_metadata").glob("*.compact"))
    output = ordered(read_parquet(hours.root / "store/hours"))
    assert output == from_scratch(hours, tmp_path_factory.mktemp("other") / "shop", read_parquet)
    assert partitions(hours) == "7"
    assert hours.committed("hours")


@pytest.mark.slow
def test_back_to_fewer_partitions(
    hours: ProjectFolder,
    tmp_path_factory: pytest.TempPathFactory,
    read_parquet: ReadParquet,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The state of partitions that no longer exist is not read, also if they exist again later."""
    for index, number in enumerate((7, 2, 7)):
        repartition_query(request(hours), "hours", number)
        read_on(hours, 2 + index, 1)
    monkeypatch.chdir(hours.root)
    done = CliRunner().invoke(cli, ["state", "repartition", "hours", "2"])
    assert "from 7 to 2 partitions" in done.stdout
    same = CliRunner().invoke(cli, ["state", "repartition", "hours", "2", "--output", "json"])
    assert [json.loads(same.stdout)[key] for key in ("model", "version", "before", "after")] == ["hours", 1, 2, 2]
    (size,) = state_size(request(hours), "hours").stores
    assert sorted(size.bytes_on_disk) == [0, 1]
    read_on(hours, 5, 1)

    output = ordered(read_parquet(hours.root / "store/hours"))
    assert output == from_scratch(hours, tmp_path_factory.mktemp("other") / "shop", read_parquet)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["repeat", "another number", "repair"])
def test_a_killed_repartition(
    hours: ProjectFolder, way: str, tmp_path_factory: pytest.TempPathFactory, read_parquet: ReadParquet
) -> None:
    """After a kill in the middle `run` refuses the query; a repetition completes it, and a repair goes back."""
    last = max(map(int, hours.committed("hours")))
    process = hours.command("state", "repartition", "hours", "7")
    hours.wait_for_batch(process, "hours", last + 1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert not (checkpoint(hours) / "commits" / str(last + 1)).exists()

    with pytest.raises(FindingsError) as refused:
        hours.run()
    (finding,) = refused.value.findings
    assert finding.code == "unfinished-repartition"
    assert "state repartition hours 7" in finding.fix

    if way == "repair":
        assert repair_checkpoint(request(hours), "hours").moved
    else:
        done = repartition_query(request(hours), "hours", 7 if way == "repeat" else 3)
        assert done.archived is not None
    read_on(hours, 2, 2)
    assert partitions(hours) == {"repeat": "7", "another number": "3", "repair": "4"}[way]
    output = ordered(read_parquet(hours.root / "store/hours"))
    assert output == from_scratch(hours, tmp_path_factory.mktemp("other") / "shop", read_parquet)


@pytest.mark.slow
def test_run_migrates_the_selected_query(
    hours: ProjectFolder, tmp_path_factory: pytest.TempPathFactory, read_parquet: ReadParquet
) -> None:
    """`--migrate` moves the state to the number of the target, once. Without it the query keeps its number."""
    hours.write({"project.yml": TARGET.replace("partitions: 4", "partitions: 7")})
    (planned,) = plan_project(PlanRequest(request(hours))).queries
    assert "`sqlstream run --migrate hours` changes it to 7" in planned.frozen[0]
    read_on(hours, 2, 1)
    assert partitions(hours) == "4"

    hours.write({"models/hours.sql": HOURS.replace("as total", "+ 0 as total")})
    hours.run(migrate=("hours",))
    assert "hours: its state has moved from 4 to 7 partitions" in notices(hours)
    read_on(hours, 3, 1)
    hours.run(migrate=("hours",))
    assert any("hours: nothing to migrate" in text for text in notices(hours))

    assert partitions(hours) == "7"
    assert [entry["action"] for entry in ledger(hours)["history"]] == ["start", "repartition", "resume"]
    output = ordered(read_parquet(hours.root / "store/hours"))
    assert output == from_scratch(hours, tmp_path_factory.mktemp("other") / "shop", read_parquet)


def notices(folder: ProjectFolder) -> list[str]:
    """Returns the notices of the last run."""
    return [event.text for event in folder.events if isinstance(event, Notice)]


def test_a_refused_migration_starts_nothing(orders: ProjectFolder) -> None:
    """The in-memory store cannot move; no query of the run starts, and the checkpoint stays as it is."""
    orders.write({"models/hours.sql": HOURS})
    orders.run()
    before = files_of(checkpoint(orders))
    orders.write({"project.yml": TARGET.replace("partitions: 4", "partitions: 7")})
    orders.rows("in/orders/2.json", order_rows(2), modified=2)

    with pytest.raises(FindingsError) as refused:
        orders.run(migrate=("hours",))

    assert [finding.code for finding in refused.value.findings] == ["cannot-repartition"]
    assert files_of(checkpoint(orders)) == before


@pytest.mark.slow
def test_a_repartition_that_is_killed_after_its_commit(
    hours: ProjectFolder, monkeypatch: pytest.MonkeyPatch, read_parquet: ReadParquet
) -> None:
    """The log of the output lacks the batch: `run` refuses, and a repetition adds it."""
    with monkeypatch.context() as patched:
        patched.setattr("sqlstream.app.state.repartition.log_empty_batch", _killed)
        with pytest.raises(KeyboardInterrupt):
            repartition_query(request(hours), "hours", 7)

    for attempt in (hours.run, lambda: repair_checkpoint(request(hours), "hours")):
        with pytest.raises(FindingsError) as refused:
            attempt()
        assert [finding.code for finding in refused.value.findings] == ["unfinished-repartition"]
    assert repartition_query(request(hours), "hours", 7).before == 7
    read_on(hours, 2, 2)
    assert partitions(hours) == "7"
    assert read_parquet(hours.root / "store/hours")


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_what_spark_cannot_repartition_is_refused(orders: ProjectFolder) -> None:
    """Before anything is written: the in-memory store, a LIMIT. A query without state is a mistake in the command."""
    orders.write(
        {
            "models/hours.sql": HOURS,
            "models/plain.sql": "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }}\n",
        }
    )
    orders.run()
    with pytest.raises(UsageError, match="keeps no state"):
        repartition_query(request(orders), "plain", 7)
    _assert_refused(orders, "hours", "RocksDB")

    limited = "{{ config(sink='nowhere') }} select id from {{ source('shop', 'orders') }} limit 9\n"
    orders.write({"project.yml": TARGET, "models/limited.sql": limited})
    orders.run("limited")
    _assert_refused(orders, "limited", "whose state Spark cannot repartition")


def _assert_refused(folder: ProjectFolder, name: str, why: str) -> None:
    before = files_of(folder.root / f"store/queries/{name}/v1")
    with pytest.raises(FindingsError) as refused:
        repartition_query(request(folder), name, 7)
    (finding,) = refused.value.findings
    assert (finding.code, why in finding.why) == ("cannot-repartition", True)
    assert files_of(folder.root / f"store/queries/{name}/v1") == before


@pytest.mark.slow
def test_an_output_that_a_promotion_switched_can_be_repartitioned(
    hours: ProjectFolder, read_parquet: ReadParquet
) -> None:
    """The batch of a repartition is in the log that readers of the plain path see, too."""
    hours.write({"models/hours.sql": HOURS.replace("sum(amount)", "sum(amount * 1000)")})
    hours.run(parallel=("hours",))
    promote(request(hours), "hours")
    assert repartition_query(request(hours), "hours", 3).after == 3
    hours.rows("in/orders/3.json", order_rows(3), modified=3)
    hours.run()
    shown, written = (hours.root / "store" / name for name in ("hours", "hours.v2"))
    logs = [{path.name for path in (folder / "_spark_metadata").glob("[0-9]*")} for folder in (shown, written)]
    assert logs[0] == logs[1]
    assert ordered(read_parquet(shown)) == ordered(read_parquet(written)) != []
