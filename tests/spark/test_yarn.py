"""On YARN with HDFS: everything reaches the executors, `debug` finds what is wrong, and no death of a process changes an
output.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator

import pyspark
import pytest

from sqlstream import ProjectRequest
from sqlstream.app import debug as checks
from sqlstream.compiler.spark_versions import minor_version
from sqlstream.spark.jvm.launch import end_jvm
from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.yarn import SMALL, Yarn, yarn_cluster
from tests.spark.conftest import (
    LONGEST_WAIT_SECONDS,
    ProjectFolder,
    descendants,
    read_proc_file,
    rows_on_hdfs,
    wait_for,
)
from tests.support.cluster_project import CODE, expected_sums, orders_in, project_on, sums_of

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A running YARN with HDFS."""
    end_jvm()  # one of an earlier test has no settings of Hadoop
    with yarn_cluster(tmp_path_factory.mktemp("yarn")) as yarn:
        yield yarn
    end_jvm()


@pytest.fixture
def yarn(started: Yarn, monkeypatch: pytest.MonkeyPatch) -> Yarn:
    """The same, whose settings the commands of the test find."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(started.conf))
    return started


@pytest.fixture
def shop(folder: ProjectFolder, yarn: Yarn) -> ProjectFolder:
    """A project on YARN with a stateful model, a seed, and a Python function that imports another module of python/.
    All its data is on HDFS, in a folder with the name of the project's folder.
    """
    folder.write(CODE)
    sources = (folder.root / "sources.yml").read_text()
    folder.write({"sources.yml": sources.replace("in/orders", f"{yarn.hdfs.uri}/{folder.root.name}/in")})
    set_target(folder, yarn)
    return folder


def set_target(shop: ProjectFolder, yarn: Yarn, **settings: str) -> None:
    """Writes project.yml. `settings` are those of Spark, with `__` for dots."""
    given = {name.replace("__", "."): value for name, value in settings.items()}
    storage = f"{yarn.hdfs.uri}/{shop.root.name}/store"
    shop.write(project_on("yarn", "yarn", storage, {**SMALL, LEASE_PERIOD: "1", **given}))


def add_orders(shop: ProjectFolder, yarn: Yarn, *numbers: int) -> None:
    """Writes a file of orders for each number, an hour of a day in January."""
    for number in numbers:
        text = "".join(json.dumps(row) + "\n" for row in orders_in(number))
        yarn.hdfs.write(f"/{shop.root.name}/in/{number}.json", text.encode())


def sums(shop: ProjectFolder, yarn: Yarn) -> list[tuple[tuple[str, str], int]]:
    """Returns the sorted rows that the log of the sink lists, as Spark reads them."""
    return sums_of(rows_on_hdfs(yarn.hdfs, f"/{shop.root.name}/store/sums"))


def executors(yarn: Yarn) -> list[int]:
    """Returns the processes of Spark's executors, without those of shells that start them."""
    java = (
        pid for node in yarn.nodes for pid in descendants(node.pid) if read_proc_file(pid, "comm").strip() == "java"
    )
    return [pid for pid in java if "ExecutorBackend" in read_proc_file(pid, "cmdline")]


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.skipif(minor_version(pyspark.__version__) == (4, 1), reason="the servers are those of Spark 4.3's Hadoop")
def test_a_project_runs_and_resumes_on_yarn(shop: ProjectFolder, yarn: Yarn) -> None:
    """A query with state, a seed and a function runs with all its data on HDFS, and resumes."""
    add_orders(shop, yarn, 0, 1)
    assert shop.run().succeeded
    add_orders(shop, yarn, 2)
    assert shop.run().succeeded

    assert sums(shop, yarn) == expected_sums(3)
    assert {each["finalStatus"] for each in yarn.applications()} == {"SUCCEEDED"}


@pytest.mark.slow
def test_plan_and_status_read_hdfs(shop: ProjectFolder, yarn: Yarn) -> None:
    """`plan` and `status` read what a run has left on HDFS: on this machine, and with --check in an application."""
    add_orders(shop, yarn, 0, 1)
    assert shop.run().succeeded
    before = len(yarn.applications())

    for options, more in (((), 0), (("--check",), 2)):
        planned, status = shop.invoke("plan", *options), shop.invoke("status", *options)
        assert "unchanged: sums" in planned.out, planned
        assert "batch" in status.out, status
        assert len(yarn.applications()) == before + more


@pytest.mark.slow
def test_killed_drivers_leave_exact_sums(shop: ProjectFolder, yarn: Yarn) -> None:
    """After `kill -9` of Python and of the JVM, each sum is exact."""
    files = KILLS * 4
    add_orders(shop, yarn, *range(files))
    shop.run_through_kills(KILLS, 11, 3)

    run = shop.command("run", "--available-now")
    printed, _ = run.communicate(timeout=2 * LONGEST_WAIT_SECONDS)

    assert run.returncode == 0, printed
    assert sums(shop, yarn) == expected_sums(files)


@pytest.mark.slow
def test_killed_executors_change_no_output(shop: ProjectFolder, yarn: Yarn) -> None:
    """Executors die by `kill -9` during one run, which goes on with others, and each sum is exact."""
    set_target(shop, yarn, spark__executor__maxNumFailures=str(KILLS + 1))
    files = KILLS + 3
    add_orders(shop, yarn, *range(files))
    run = shop.command("run", "--available-now", "--log-format", "json")
    for number in range(KILLS):
        wait_for(run, '"event": "batch"')
        living = executors(yarn)
        os.kill(living[number % len(living)], signal.SIGKILL)
    printed, _ = run.communicate(timeout=2 * LONGEST_WAIT_SECONDS)

    assert run.returncode == 0, printed
    assert "Lost executor" in (shop.root / "logs/sqlstream.log").read_text()
    assert sums(shop, yarn) == expected_sums(files)


@pytest.mark.slow
@pytest.mark.parametrize("node", [0, 1], ids=["name node", "data node"])
def test_hdfs_dies_and_comes_back(shop: ProjectFolder, yarn: Yarn, node: int) -> None:
    """A server of HDFS dies by `kill -9` during a run and starts again. If the run fails, the next one goes on from its
    last batch; each sum is exact.
    """
    server = yarn.hdfs.nodes[node]
    for kill in range(KILLS):
        add_orders(shop, yarn, *range(4 * kill, 4 * kill + 4))  # the run before may have gone on to its end
        run = shop.command("run", "--available-now", "--log-format", "json")
        wait_for(run, '"event": "batch"')
        server.stop(signal.SIGKILL)
        server.start()
        yarn.hdfs.wait_for_data_node()
        run.communicate(timeout=4 * LONGEST_WAIT_SECONDS)

    last = shop.command("run", "--available-now")
    printed, _ = last.communicate(timeout=2 * LONGEST_WAIT_SECONDS)

    assert last.returncode == 0, printed
    assert sums(shop, yarn) == expected_sums(4 * KILLS)


@pytest.mark.slow
def test_debug_asks_the_executors(shop: ProjectFolder, yarn: Yarn) -> None:
    """`debug` has a line for the executors, the driver's address, their clocks, their Python and the storage."""
    set_target(shop, yarn)
    found = {check.name: check for check in checks.debug(ProjectRequest(shop.root))}

    assert [(name, check.found) for name, check in found.items() if not check.ok] == []
    assert found["executors"].found == "2 executors with 2 cores"
    assert list(found)[-5:] == ["executors", "driver", "clocks", "workers", "shared"]


@pytest.mark.slow
def test_without_settings_of_hadoop_the_error_names_the_variable(
    shop: ProjectFolder, yarn: Yarn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without HADOOP_CONF_DIR, a run ends with three lines that name it."""
    set_target(shop, yarn)
    monkeypatch.delenv("HADOOP_CONF_DIR")

    run = shop.command("run", "--available-now")
    printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert run.returncode == 1
    assert "[spark-start] Spark failed to start for target `yarn`" in printed
    assert "fix: set it to the folder with yarn-site.xml and core-site.xml: export HADOOP_CONF_DIR=" in printed
    assert "\tat " not in printed


@pytest.mark.slow
def test_a_run_that_waits_for_yarn_can_be_stopped(shop: ProjectFolder, yarn: Yarn) -> None:
    """If no node has memory for the application, the run says so, and one signal ends it."""
    add_orders(shop, yarn, 0)
    for node in yarn.nodes:
        node.pause()
    try:
        run = shop.command("run")
        wait_for(run, "waiting for YARN: the application has not started yet in queue `default`")
        run.send_signal(signal.SIGTERM)
        printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)
    finally:
        for node in yarn.nodes:
            node.resume()

    assert (run.returncode, "Traceback" in printed) == (0, False), printed
