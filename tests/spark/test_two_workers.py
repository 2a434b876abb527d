"""On a standalone cluster of two workers: everything reaches the executors, and a killed worker changes no output."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark
import pytest

from sqlstream import ProjectRequest
from sqlstream.app import debug as checks
from sqlstream.compiler.spark_versions import minor_version
from tests.services.spark_cluster import SparkCluster
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]

FUNCTIONS = """from pyspark.sql.functions import udf

from sqlstream import MicroBatch
from factors import FACTOR


@udf("int")
def scaled(value):
    return FACTOR * value


def send(rows, batch: MicroBatch):
    pass
"""
SUMS = """{{ config(sink='lake', output_mode='append') }}
select o.window.start as at, k.name, o.amount
from (
  select window(ts, '1 minute') as window, kind, sum(scaled(amount)) as amount
  from (select /*+ WATERMARK(ts, '1 minute') */ * from {{ source('shop', 'orders') }})
  group by window(ts, '1 minute'), kind
) o join {{ ref('kinds') }} k on o.kind = k.kind
"""
FILES = 4


def project_on(folder: ProjectFolder, cluster: SparkCluster, **settings: str) -> None:
    """Gives the project a target on the cluster, whose executors run the Python of the tests."""
    spark = {"spark.pyspark.python": sys.executable, "spark.sql.shuffle.partitions": "2", **settings}
    target = {"master": cluster.master, "storage": f"{folder.root}/store", "spark": spark}
    folder.write(
        {"project.yml": json.dumps({"name": "shop", "targets": {"local": target}, "functions": ["functions:scaled"]})}
    )


def with_code(folder: ProjectFolder) -> ProjectFolder:
    """Adds a stateful model with a seed and a Python function that imports another module of python/."""
    folder.write(
        {
            "python/factors.py": "FACTOR = 3\n",
            "python/functions.py": FUNCTIONS,
            "seeds/kinds.csv": "kind,name\na,Apples\nb,Berries\n",
            "models/sums.sql": SUMS,
        }
    )
    return folder


@pytest.mark.smoke
@pytest.mark.slow
@pytest.mark.skipif(minor_version(pyspark.__version__) == (4, 1), reason="CI runs it on the newest Spark only")
def test_a_killed_worker_changes_no_output(folder: ProjectFolder, cluster: SparkCluster, read_parquet: Rows) -> None:
    """A worker dies by `kill -9` in the middle of a run: the run goes on with the other one, and each sum is exact."""
    project_on(with_code(folder), cluster)
    expected: Counter[tuple[str, str]] = Counter()
    for number in range(FILES):
        rows: list[dict[str, Any]] = [
            {"id": i, "ts": f"2024-01-01T0{number}:00:{i:02}Z", "kind": "ab"[i % 2], "amount": number + i}
            for i in range(20)
        ]
        folder.rows(f"in/orders/{number}.json", rows, modified=number)
        for row in rows:
            expected[row["ts"][:16], {"a": "Apples", "b": "Berries"}[row["kind"]]] += 3 * row["amount"]
    folder.rows("in/orders/8.json", [{"id": 0, "ts": "2024-01-02T00:00:00Z", "kind": "a", "amount": 1}], modified=8)

    run = folder.command("run", "--available-now", "--log-format", "json")
    wait_for(run, '"event": "batch"')
    (folder.root / "seeds/kinds.csv").unlink()  # executors on other machines never had it
    cluster.kill_worker(0)
    printed, _ = run.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert run.returncode == 0, printed
    assert "Lost executor" in (folder.root / "logs/sqlstream.log").read_text()
    sums = [
        ((f"{row['at']:%Y-%m-%dT%H:%M}", row["name"]), row["amount"])
        for row in read_parquet(folder.root / "store/sums")
    ]
    assert sorted(sums) == sorted(expected.items())


@pytest.mark.slow
def test_debug_asks_the_executors(folder: ProjectFolder, cluster: SparkCluster) -> None:
    """`debug` has a line for the executors, the driver's address, their clocks, their Python and the storage."""
    project_on(with_code(folder), cluster, **{"spark.cores.max": "2"})

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
    project_on(folder, cluster, **wrong)
    folder.write({"project.yml": (folder.root / "project.yml").read_text().replace('"functions:scaled"', "")})
    without = {check.name: check for check in checks.debug(ProjectRequest(folder.root))}["workers"]
    project_on(with_code(folder), cluster, **wrong)
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
    project_on(with_code(folder), cluster, **settings)

    *_, last = checks.debug(ProjectRequest(folder.root))

    assert (last.name, last.ok) == ("executors", False)
    assert f"call the driver at {settings.get('spark.driver.host', '')}" in last.found
    assert "spark.driver.host" in last.fix
