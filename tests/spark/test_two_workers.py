"""On a standalone cluster of two workers: everything reaches the executors, and killed workers change no output.

SQLSTREAM_KILLS sets the number of killed workers (`make cluster`: ten).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqlstream import ProjectRequest
from sqlstream.app import debug as checks
from sqlstream.compiler.spark_versions import minor_version
from tests.services.spark_cluster import SparkCluster
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, wait_for
from tests.support.cluster_project import CODE, expected_sums, orders_in, project_on, sums_of

Rows = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "1"))
FILES = 4 + KILLS


def write_project(
    folder: ProjectFolder, cluster: SparkCluster, settings: Mapping[str, str] | None = None, *, has_code: bool = True
) -> None:
    """Gives the project a target on the cluster with `settings` of Spark, and its code."""
    project = project_on("local", cluster.master, f"{folder.root}/store", settings or {}, has_code=has_code)
    folder.write(project | (CODE if has_code else {}))


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.skipif(minor_version(pyspark.__version__) == (4, 1), reason="CI runs it on the newest Spark only")
def test_killed_workers_change_no_output(folder: ProjectFolder, cluster: SparkCluster, read_parquet: Rows) -> None:
    """One worker after the other dies by `kill -9` in the middle of a run, and comes back: the run goes on, and each sum
    is exact.
    """
    write_project(folder, cluster)
    for number in range(FILES):
        folder.rows(f"in/orders/{number}.json", orders_in(number), modified=number)

    run = folder.command("run", "--available-now", "--log-format", "json")
    for kill in range(KILLS):
        wait_for(run, '"event": "batch"')
        (folder.root / "seeds/kinds.csv").unlink(missing_ok=True)  # executors on other machines never had it
        cluster.start_killed_workers()
        cluster.kill_worker(kill % 2)
    printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert run.returncode == 0, printed
    assert "Lost executor" in (folder.root / "logs/sqlstream.log").read_text()
    assert sums_of(read_parquet(folder.root / "store/sums")) == expected_sums(FILES)


@pytest.mark.slow
def test_debug_asks_the_executors(folder: ProjectFolder, cluster: SparkCluster) -> None:
    """`debug` has a line for the executors, the driver's address, their clocks, their Python and the storage."""
    write_project(folder, cluster, {"spark.cores.max": "2"})

    found = {check.name: check for check in checks.debug(ProjectRequest(folder.root))}

    assert [name for name, check in found.items() if not check.ok] == []
    assert found["executors"].found == "2 executors with 2 cores"
    assert list(found)[-5:] == ["executors", "driver", "clocks", "workers", "shared"]
    assert [path for path in (folder.root / "store").iterdir() if "debug" in path.name] == []


@pytest.mark.slow
def test_a_python_that_does_not_start_is_an_error_only_with_python_code(
    folder: ProjectFolder, cluster: SparkCluster
) -> None:
    """If executors cannot run Python, `debug` says so: with a fix if the project has Python code, and as OK otherwise."""
    wrong = {"spark.pyspark.python": "/no/such/python"}
    write_project(folder, cluster, wrong, has_code=False)
    without = {check.name: check for check in checks.debug(ProjectRequest(folder.root))}["workers"]
    write_project(folder, cluster, wrong)
    with_python = {check.name: check for check in checks.debug(ProjectRequest(folder.root))}["workers"]

    assert without.ok
    assert "this project has none" in without.found
    assert not with_python.ok
    assert "/no/such/python" in with_python.found
    assert "spark.pyspark.python" in with_python.fix


@pytest.mark.slow
@pytest.mark.parametrize(
    "settings",
    [{"spark.executor.memory": "30g"}, {"spark.driver.host": "192.0.2.1", "spark.driver.bindAddress": "127.0.0.1"}],
)
def test_executors_that_never_come_are_an_error(
    folder: ProjectFolder, cluster: SparkCluster, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors that the cluster cannot start, or that cannot reach the driver, are one error, with the driver's address."""
    monkeypatch.setattr(checks, "EXECUTOR_SECONDS", 5.0)
    write_project(folder, cluster, settings)

    *_, last = checks.debug(ProjectRequest(folder.root))

    assert (last.name, last.ok) == ("executors", False)
    assert f"call the driver at {settings.get('spark.driver.host', '')}" in last.found
    assert "spark.driver.host" in last.fix
