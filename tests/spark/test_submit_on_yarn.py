"""`sqlstream submit` on a real YARN: the driver runs in the cluster, and another checkout sees the run."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.yarn import SMALL, Yarn, yarn_cluster
from tests.spark.conftest import ProjectFolder, order_rows

SUBMIT_SECONDS = 600
"""YARN and Spark start three Java processes, which takes minutes on a busy machine."""

SECRET = "tulip4711"
FUNCTIONS = """from pyspark.sql.functions import udf


@udf("int")
def scaled(value):
    return 3 * value
"""
MODEL = """{{ config(sink='lake', output_mode='append') }}
select id, scaled(amount) as amount, '{{ env_var('REGION') }}' as region, '{{ var('day') }}' as day
from {{ source('shop', 'orders') }}
"""


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    """A running YARN with one node."""
    with yarn_cluster(tmp_path_factory.mktemp("yarn"), nodes=1) as started:
        yield started


@pytest.mark.slow
def test_a_submitted_run_is_the_same_run(
    yarn: Yarn, orders: ProjectFolder, tmp_path: Path, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """The driver in the cluster has the project, its Python, variables and secrets, and its rows are those of a run here.
    A copy of the project elsewhere then knows the run from HDFS. Nothing that YARN keeps has the secret.
    """
    root = tmp_path / "shop"
    root.mkdir()
    target: dict[str, Any] = {
        "master": "yarn",
        "storage": f"{yarn.hdfs.uri}/shop",
        "spark": {
            **SMALL,
            "spark.yarn.maxAppAttempts": "1",
            "spark.pyspark.python": sys.executable,
            "spark.driver.memory": "600m",
            "spark.executor.instances": "1",
            "spark.sql.shuffle.partitions": "2",
            "spark.hadoop.shop.key": "{{ env_var('SQLSTREAM_SECRET_KEY') }}",
        },
    }
    project = {"name": "shop", "functions": ["functions:scaled"]}
    sources = (orders.root / "sources.yml").read_text().replace("in/orders", f"file://{orders.root}/in/orders")
    shop = ProjectFolder(root)
    shop.write(
        {
            "project.yml": json.dumps({**project, "targets": {"prod": target}}),
            "sources.yml": sources,
            "sinks.yml": f"sinks:\n  - {{name: lake, format: parquet, path: 'file://{tmp_path}/out/{{{{ model.name }}}}'}}\n",
            "python/functions.py": FUNCTIONS,
            "models/amounts.sql": MODEL,
        }
    )
    env = {"HADOOP_CONF_DIR": str(yarn.conf), "REGION": "eu", "SQLSTREAM_SECRET_KEY": SECRET}
    options = ("--vars", "{day: '2024-01-01'}")
    copy = ProjectFolder(tmp_path / "copy")
    shutil.copytree(root, copy.root)
    here = {"master": "local[2]", "storage": target["storage"]}  # a start on YARN takes longer
    copy.write({"project.yml": json.dumps({**project, "targets": {"prod": target, "local": here}})})

    submitted = shop.command("submit", "--available-now", *options, env=env)
    printed, _ = submitted.communicate(timeout=SUBMIT_SECONDS)

    assert submitted.returncode == 0, printed
    (application,) = yarn.applications()
    assert f"{application['id']}: finished" in printed
    expected = [
        {"id": row["id"], "amount": 3 * row["amount"], "region": "eu", "day": "2024-01-01"}
        for number in range(2)
        for row in order_rows(number)
    ]
    assert sorted(read_parquet(tmp_path / "out/amounts"), key=lambda row: int(row["id"])) == expected
    status = copy.command("status", "--check", "--output", "json", *options, env=env)
    shown, _ = status.communicate(timeout=SUBMIT_SECONDS)
    assert status.returncode == 0, shown
    (query,) = json.loads(shown[shown.index("\n{") :])["queries"]
    assert (query["model"], query["status"], query["rows_in"]) == ("amounts", "success", 10)
    kept = [path for path in yarn.conf.parent.glob("node-*/logs/**/*") if path.is_file()]
    assert [path.name for path in kept if path.name == "launch_container.sh"]
    assert [path for path in kept if SECRET.encode() in path.read_bytes()] == []
