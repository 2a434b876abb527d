"""A run is refused, and the file named, when Spark cannot continue exactly from a checkpoint. `sqlstream state repair`
moves uncommitted files aside; then each row comes out once.
"""

from __future__ import annotations

import io
import shutil
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.cli.main import main
from sqlstream.errors import Finding, FindingsError
from sqlstream.state.runs.events import QueryRestarting, RunEvent, Status
from tests.spark.conftest import PROJECT, ProjectFolder, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

ALL = "{{ config(sink='lake', retries={'attempts': 2, 'first_delay': '10 milliseconds'}) }} select id from"
ROWS = [10 * number + i for number in range(4) for i in range(5)]
LOST = "store/queries/all/v1/checkpoint"
SINK = "store/all/_spark_metadata"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Returns the project of a query with three finished batches and one unread file, and a copy of the project.

    Each test restores the folder from the copy, because a checkpoint contains absolute paths.
    """
    folder = ProjectFolder(tmp_path_factory.mktemp("damage") / "project")
    folder.write(
        {
            "project.yml": PROJECT,
            "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in/orders, "
            "schema: 'id int, ts timestamp', options: {maxFilesPerTrigger: 1}}\n",
            "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
            "models/all.sql": f"{ALL} {{{{ source('shop', 'orders') }}}}",
        }
    )
    for number in range(3):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    assert folder.result().batches == 3
    folder.rows("in/orders/3.json", order_rows(3), modified=3)
    copy = folder.root.with_name("copy")
    shutil.copytree(folder.root, copy)
    return folder.root, copy


@pytest.fixture
def stopped(prepared: tuple[Path, Path]) -> ProjectFolder:
    """The project, restored from its copy."""
    root, copy = prepared
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    return ProjectFolder(root)


def remove(path: Path) -> None:
    """Removes a Spark file and its checksum."""
    path.unlink()
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def tear(path: Path, kept: int) -> None:
    """Keeps only the first `kept` bytes of a file and drops its checksum, as a power failure may."""
    path.write_bytes(path.read_bytes()[:kept])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def lose_batch(folder: ProjectFolder, *, in_sink: bool = True) -> None:
    """Removes the last batch's commit, as if the query had stopped before it; with `in_sink`, the sink's too."""
    remove(folder.root / LOST / "commits/2")
    if in_sink:
        remove(folder.root / SINK / "2")


def refusal(folder: ProjectFolder) -> Finding:
    """Returns the only finding that refuses a run."""
    with pytest.raises(FindingsError) as caught:
        folder.run()
    (finding,) = caught.value.findings
    return finding


def repair(folder: ProjectFolder) -> tuple[int, str]:
    """Returns the exit code and everything that the command prints."""
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed), pytest.raises(SystemExit) as ended:
        main(["state", "repair", "all", "--project-dir", str(folder.root)])
    return int(ended.value.code or 0), printed.getvalue()


def ids(folder: ProjectFolder, read_parquet: Rows) -> list[int]:
    """Returns the ids in the output."""
    return sorted(row["id"] for row in read_parquet(folder.root / "store/all"))


def torn_offsets(folder: ProjectFolder) -> str:
    """Tears the offsets of a batch that neither the sink nor the commits contain."""
    lose_batch(folder)
    tear(folder.root / LOST / "offsets/2", 30)
    return f"{LOST}/offsets/2"


def torn_offsets_written_rows(folder: ProjectFolder) -> str:
    """Tears the offsets of a batch whose rows the sink already has: with another plan it would take no new rows."""
    lose_batch(folder, in_sink=False)
    tear(folder.root / LOST / "offsets/2", 0)
    return f"{LOST}/offsets/2"


def torn_commit(folder: ProjectFolder) -> str:
    """Tears the commit of a batch that is complete otherwise."""
    tear(folder.root / LOST / "commits/2", 0)
    return f"{LOST}/commits/2"


def torn_source(folder: ProjectFolder) -> str:
    """Tears the file list of a batch."""
    lose_batch(folder)
    tear(folder.root / LOST / "sources/shop__orders/2", 20)
    return f"{LOST}/sources/shop__orders/2"


def torn_source_before_offsets(folder: ProjectFolder) -> str:
    """Tears the file list of a batch of which nothing else was written."""
    lose_batch(folder)
    remove(folder.root / LOST / "offsets/2")
    tear(folder.root / LOST / "sources/shop__orders/2", 0)
    return f"{LOST}/sources/shop__orders/2"


def torn_sink(folder: ProjectFolder) -> str:
    """Tears the sink's log entry: Spark considers the batch written, and silently loses its rows."""
    lose_batch(folder, in_sink=False)
    tear(folder.root / SINK / "2", 0)
    return f"{SINK}/2"


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        torn_offsets,
        torn_offsets_written_rows,
        torn_commit,
        torn_source,
        torn_source_before_offsets,
        torn_sink,
    ],
)
def test_uncommitted_files_are_moved_aside(
    stopped: ProjectFolder, read_parquet: Rows, damage: Callable[[ProjectFolder], str]
) -> None:
    """The run is refused and names the file; after the repair each row comes out once, and nothing is deleted."""
    file = damage(stopped)
    torn = (stopped.root / file).read_bytes()

    finding = refusal(stopped)
    assert (finding.code, str(finding.location)) == ("torn-checkpoint", "models/all.sql:1:1")
    assert str(stopped.root / file) in finding.why
    assert "`sqlstream state repair all`" in finding.fix
    code, output = repair(stopped)

    assert code == 0, output
    assert f"Moved {stopped.root / file}\n" in output
    assert not (stopped.root / file).exists()
    kept = [path for path in stopped.root.rglob(Path(file).name) if "rchive" in str(path)]
    assert torn in [path.read_bytes() for path in kept]
    assert stopped.result().status is Status.SUCCESS
    assert ids(stopped, read_parquet) == ROWS


def test_a_healthy_checkpoint_needs_no_repair(stopped: ProjectFolder) -> None:
    """A healthy checkpoint stays as it is, and an unknown query name is a usage error."""
    before = sorted(path for path in stopped.root.rglob("*") if "target" not in path.parts)

    assert repair(stopped) == (
        0,
        "Nothing to repair: the checkpoint of `all` has no incomplete entries, and its output is clean.\n",
    )

    assert sorted(path for path in stopped.root.rglob("*") if "target" not in path.parts) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    "entry", [f"{LOST}/offsets/2", f"{LOST}/sources/shop__orders/1", f"{SINK}/1", f"{LOST}/metadata"]
)
def test_committed_batches_cannot_be_repaired(stopped: ProjectFolder, entry: str) -> None:
    """Damage to a committed batch cannot be repaired: restore a copy or start over. Nothing is touched."""
    tear(stopped.root / entry, 10)

    finding = refusal(stopped)

    assert finding.code == "torn-checkpoint"
    assert finding.fix == (
        "restore the file from a backup; or `sqlstream run --full-refresh --select all` restarts from scratch and keeps the old "
        "checkpoint and output"
    )
    code, output = repair(stopped)
    assert code == 1
    assert finding.why in output
    assert (stopped.root / entry).exists()


def test_a_missing_source_file_is_refused(stopped: ProjectFolder, read_parquet: Rows) -> None:
    """A batch with a missing file is refused, as Spark would commit it without its rows; with the file it resumes."""
    lose_batch(stopped)
    file = stopped.root / "in/orders/2.json"
    aside = file.rename(stopped.root / "2.json")

    finding = refusal(stopped)
    assert (finding.code, finding.message) == (
        "source-file-gone",
        "batch 2 of `all` started with a missing file",
    )
    assert f"{file}" in finding.why
    aside.rename(file)

    assert stopped.result().status is Status.SUCCESS
    assert ids(stopped, read_parquet) == ROWS


def test_a_repair_gives_up_a_missing_source_file(stopped: ProjectFolder, read_parquet: Rows) -> None:
    """On request, a repair gives up a missing file: the batch is planned again over the files that exist."""
    lose_batch(stopped)
    (stopped.root / "in/orders/2.json").unlink()

    code, output = repair(stopped)

    assert code == 0, output
    assert stopped.result().status is Status.SUCCESS
    assert ids(stopped, read_parquet) == [row for row in ROWS if row // 10 != 2]


def test_a_batch_in_the_sink_needs_no_source_file(stopped: ProjectFolder, read_parquet: Rows) -> None:
    """A batch that stopped between the sink's commit and its own is complete without its input files."""
    lose_batch(stopped, in_sink=False)
    (stopped.root / "in/orders/2.json").unlink()

    assert stopped.result().status is Status.SUCCESS
    assert ids(stopped, read_parquet) == ROWS


@pytest.mark.slow
def test_a_file_that_vanishes_during_a_run_fails_the_query(stopped: ProjectFolder, read_parquet: Rows) -> None:
    """If a file vanishes during a run, the query fails in that batch and does not restart with fewer rows."""
    rows = "{{ source('shop', 'orders') }} where id < 30 or reflect('java.lang.Long', 'parseLong', concat('x', id)) = 0"
    stopped.write({"models/all.sql": f"{ALL} {rows}"})
    file = stopped.root / "in/orders/3.json"

    def notify(event: RunEvent) -> None:
        if isinstance(event, QueryRestarting):
            file.unlink()

    (result,) = run_models(RunRequest(ProjectRequest(stopped.root), available_now=True), notify).results

    assert (result.status, result.restarts) == (Status.ERROR, 1)
    assert result.finding is not None
    assert result.finding.code == "source-file-gone"
    assert str(file) in result.finding.why
    stopped.rows("in/orders/3.json", order_rows(3), modified=3)
    stopped.write({"models/all.sql": f"{ALL} {{{{ source('shop', 'orders') }}}}"})
    assert stopped.result().status is Status.SUCCESS
    assert ids(stopped, read_parquet) == ROWS
