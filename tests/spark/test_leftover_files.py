"""Leftover files of a batch that a killed run did not finish: what a reader of the whole folder counts, and how
`state files` and `state repair` tell them from committed files. Spark always reads the same rows.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyarrow import ArrowInvalid

from sqlstream.spark.storage.locks import file_lock
from tests.spark.conftest import PROJECT, Invoked, ProjectFolder, order_rows, wait_until

Rows = Callable[[Path], list[dict[str, Any]]]

ALL = "{{ config(sink='lake') }} select id, kind from {{ source('shop', 'orders') }}"
STUCK = f"{ALL} where id < 20 or reflect('java.lang.Thread', 'sleep', 600000L) is null"
"""A batch with one task that ends and one that hangs."""

IDS = [10 * number + i for number in range(3) for i in range(5)]


def state(folder: ProjectFolder, *arguments: str) -> Invoked:
    """Runs `sqlstream state` in this process."""
    return folder.invoke("state", *arguments)


def whole(path: Path) -> bool:
    """Returns whether a Parquet file has its footer."""
    try:
        pq.read_metadata(path)
    except (ArrowInvalid, OSError):
        return False
    return True


def globbed(folder: ProjectFolder, output: str = "all") -> list[Path]:
    """Returns the files that pandas, DuckDB or Athena find in the output."""
    return sorted((folder.root / "store" / output).glob("**/part-*.parquet"))


def ids(paths: list[Path]) -> list[int]:
    """Returns the ids in all readable files."""
    return sorted(
        row["id"] for path in paths if whole(path) for row in pq.read_table(path, partitioning=None).to_pylist()
    )


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A query with one committed batch, killed in the second after it wrote some files.

    Returns the project and a copy of it.
    """
    folder = ProjectFolder(tmp_path_factory.mktemp("killed") / "project")
    folder.write(
        {
            "project.yml": PROJECT,
            "sources.yml": "sources:\n  - name: shop\n    tables:\n      - {name: orders, format: json, path: in/orders, "
            "schema: 'id int, ts timestamp, kind string'}\n",
            "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}', partition_by: kind}]\n",
            "models/all.sql": ALL,
        }
    )
    folder.rows("in/orders/0.json", order_rows(0), modified=0)
    assert folder.result().batches == 1
    committed = set(globbed(folder))
    for number in (1, 2):
        folder.rows(f"in/orders/{number}.json", order_rows(number), modified=number)
    folder.write({"models/all.sql": STUCK})
    process = folder.command("run", "--available-now")
    wait_until(process, lambda: sum(map(whole, set(globbed(folder)) - committed)) >= len("ab"))
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    folder.write({"models/all.sql": ALL})
    copy = folder.root.with_name("copy")
    shutil.copytree(folder.root, copy)
    return folder.root, copy


@pytest.fixture
def project(killed: tuple[Path, Path]) -> ProjectFolder:
    """The project as the kill left it."""
    root, copy = killed
    shutil.rmtree(root)
    shutil.copytree(copy, root)
    return ProjectFolder(root)


@pytest.mark.slow
def test_leftovers_are_moved_aside_after_the_next_run(project: ProjectFolder, read_parquet: Rows) -> None:
    """A reader of the whole folder counts rows twice after the query resumes, and once after the repair."""
    assert project.result().rows_out == 10
    output = project.root / "store/all"
    assert sorted(row["id"] for row in read_parquet(output)) == IDS
    assert ids(globbed(project)) == sorted([*IDS, *range(10, 15)])

    done = state(project, "repair", "all")

    assert done.code == 0
    assert "that no batch has committed\n" in done.out
    assert ids(globbed(project)) == IDS
    assert sorted(row["id"] for row in read_parquet(output)) == IDS
    (archive,) = (project.root / "store/_archive/all").iterdir()
    assert f"   from {output}\n   to {archive}\n" in done.out
    assert ids(sorted(archive.glob("kind=*/part-*.parquet"))) == [*range(10, 15)]
    assert [path for path in output.rglob(".part-*.crc") if not path.with_name(path.name[1:-4]).exists()] == []
    assert state(project, "files", "all").err == ""
    project.rows("in/orders/3.json", order_rows(3), modified=3)
    assert project.result().rows_out == 5


@pytest.mark.slow
def test_leftovers_are_moved_aside_before_the_next_run(project: ProjectFolder, read_parquet: Rows) -> None:
    """Leftover files can be moved aside before the next run, which repeats the batch: any reader gets each row once."""
    done = state(project, "repair", "all", "--output", "json")
    found = json.loads(done.out)
    assert (done.code, found["model"], found["checkpoint"]) == (0, "all", [])
    (output,) = found["outputs"]
    moved = [Path(output["archive"], file["name"]) for file in output["files"]]
    assert {path.stat().st_size for path in moved} == {file["bytes"] for file in output["files"]}
    assert ids(globbed(project)) == list(range(5))

    assert project.result().rows_out == 10

    assert ids(globbed(project)) == sorted(row["id"] for row in read_parquet(project.root / "store/all")) == IDS


def test_committed_files_are_listed_without_java(project: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Java, `state files` lists one committed file per line and counts uncommitted and foreign files."""
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("PATH", "/nowhere")
    (project.root / "store/all/kind=a/mine.parquet").write_bytes(b"")
    left = len(globbed(project)) - 2

    listed = state(project, "files", "all")

    assert listed.code == 0
    assert ids([Path(line) for line in listed.out.splitlines()]) == list(range(5))
    counted, advice, foreign = listed.err.splitlines()
    assert counted.startswith(f"No batch has committed {left} files in {project.root}/store/all; ")
    assert "`sqlstream state repair all`" in advice
    assert foreign == "Not listed: 1 file that Spark did not write."
    found = json.loads(state(project, "files", "all", "--output", "json").out)
    assert [file["path"] for file in found["committed"]] == listed.out.splitlines()
    assert {file["batch_id"] for file in found["committed"]} == {0}
    assert all(Path(file["path"]).stat().st_size == file["bytes"] for file in found["committed"] + found["leftover"])
    assert (len(found["leftover"]), found["foreign"], found["missing"]) == (left, 1, [])


def test_a_running_query_is_not_repaired(project: ProjectFolder) -> None:
    """A running query is not repaired, because its files may belong to the batch that it is writing."""
    before = globbed(project)
    with file_lock(project.root / "store/queries/all/v1.lock"):
        refused = state(project, "repair", "all")

    assert refused.code == 1
    assert "[query-in-use]" in refused.err
    assert globbed(project) == before


@pytest.mark.parametrize("gone", ["0", ""])
def test_nothing_is_moved_if_the_log_is_incomplete(project: ProjectFolder, gone: str) -> None:
    """No file moves if the sink's log or an entry is missing, because every file would look uncommitted."""
    path = project.root / "store/all/_spark_metadata" / gone
    if gone:
        path.unlink()
    else:
        shutil.rmtree(path)
    before = globbed(project)

    refused = state(project, "repair", "all")

    assert refused.code == 1
    assert "[torn-checkpoint] the output log of `all` lacks an entry" in refused.err
    assert globbed(project) == before


@pytest.mark.slow
def test_a_compacted_log_is_read(project: ProjectFolder) -> None:
    """A compacted log is read: Spark merges ten batches into one entry, which does not say which batch wrote a file."""
    for number in range(3, 16):
        project.rows(f"in/orders/{number}.json", order_rows(number, 1), modified=number)
    sources = project.root / "sources.yml"
    sources.write_text(sources.read_text().replace("}\n", ", options: {maxFilesPerTrigger: 1}}\n"))
    project.run()
    assert (project.root / "store/all/_spark_metadata/9.compact").exists()
    assert state(project, "repair", "all").code == 0

    found = json.loads(state(project, "files", "all", "--output", "json").out)

    assert sorted(file["path"] for file in found["committed"]) == [str(path) for path in globbed(project)]
    assert {file["batch_id"] for file in found["committed"]} >= {None, 10, 11}
    assert ids(globbed(project)) == sorted([*IDS, *(10 * number for number in range(3, 16))])


def test_files_of_an_old_version_can_be_listed(project: ProjectFolder) -> None:
    """A full refresh writes beside the old output, whose files can still be listed and moved aside."""
    project.run(full_refresh=("all",))

    assert ids([Path(line) for line in state(project, "files", "all").out.splitlines()]) == IDS
    old = state(project, "files", "all", "--version", "1")
    assert ids([Path(line) for line in old.out.splitlines()]) == list(range(5))
    assert "No batch has committed" in old.err
    assert state(project, "repair", "all", "--version", "1").code == 0
    assert ids(globbed(project, "all.v1")) == list(range(5))
    assert ids(globbed(project, "all.v2")) == ids(globbed(project)) == IDS
    assert state(project, "files", "all", "--version", "3").code == 2


@pytest.fixture
def behind_uri(project: ProjectFolder) -> ProjectFolder:
    """The same storage behind a URI, which only Hadoop's file systems can reach and which has no file locks."""
    settings = f"{{spark.hadoop.fs.viewfs.mounttable.default.link./store: 'file://{project.root}/store'}}"
    local = project.root / "project.yml"
    local.write_text(PROJECT.replace("storage: store", f"storage: 'viewfs:///store', spark: {settings}"))
    return project


def test_leftovers_behind_a_uri_are_moved_aside(behind_uri: ProjectFolder) -> None:
    """Leftover files behind a URI can be moved aside before the next run, too."""
    listed = state(behind_uri, "files", "all")
    assert all(line.startswith("viewfs:///store/all/kind=") for line in listed.out.splitlines())
    assert state(behind_uri, "repair", "all").code == 0
    assert ids(globbed(behind_uri)) == list(range(5))

    assert behind_uri.result().rows_out == 10

    assert ids(globbed(behind_uri)) == IDS
