"""On a standalone cluster with one worker, a new checkpoint gets shuffle partitions by the cluster's cores."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from sqlstream.spark.jvm.cluster import PARTITIONS
from sqlstream.state.runs.events import Notice
from tests.services.spark_cluster import spark_cluster
from tests.spark.conftest import ProjectFolder

CORES = 3

SUMS = """{{ config(sink='nowhere', output_mode='update') }}
select kind, sum(amount) as amount from {{ source('shop', 'orders') }} group by kind
"""


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a standalone master with one worker, whose cores all register at once."""
    with spark_cluster(tmp_path_factory.mktemp("cluster"), workers=1, cores=CORES) as started:
        yield started.master


def project_on(folder: ProjectFolder, master: str, *settings: str) -> None:
    """Gives the project a target on the cluster with additional Spark settings."""
    spark = ["spark.driver.host: 127.0.0.1", "spark.executor.memory: 512m", *settings]
    target = f"{{master: '{master}', storage: '{folder.root}/store', spark: {{{', '.join(spark)}}}}}"
    folder.write(
        {"project.yml": f"name: shop\nversion: 1.0.0\ntargets: {{local: {target}}}\n", "models/sums.sql": SUMS}
    )


def partitions(folder: ProjectFolder, version: int = 1) -> str:
    """Returns the number of partitions in the ledger of `sums`."""
    ledger = json.loads((folder.root / f"store/queries/sums/v{version}/ledger.json").read_text())
    return str(ledger["identity"]["settings"][PARTITIONS])


def notices(folder: ProjectFolder) -> list[str]:
    """Returns the notices of the last run about the number of partitions."""
    return [event.text for event in folder.events if isinstance(event, Notice) and "shuffle partitions" in event.text]


@pytest.mark.slow
def test_an_earlier_run_in_the_process_has_no_effect(orders: ProjectFolder, master: str) -> None:
    """An earlier run's number of partitions, which is still in the JVM's Spark configuration, is ignored."""
    project_on(orders, "local[2]", f"{PARTITIONS}: '5'")
    orders.result()
    assert partitions(orders) == "5"

    project_on(orders, master)
    orders.result(full_refresh=True)
    assert partitions(orders, version=2) == str(2 * CORES)


@pytest.mark.slow
def test_a_new_checkpoint_gets_twice_the_cores_of_the_cluster(orders: ProjectFolder, master: str) -> None:
    """A new checkpoint gets twice the cluster's cores, with a notice; later runs silently keep the ledger's number."""
    project_on(orders, master)

    first = orders.result()
    lines = notices(orders)
    assert (first.rows_in, first.rows_out) == (10, 4)
    assert [f"{2 * CORES} shuffle partitions, twice the {CORES} cores of the cluster" in line for line in lines] == [
        True
    ], lines
    assert partitions(orders) == str(2 * CORES)
    states = orders.root / "store/queries/sums/v1/checkpoint/state/0"
    assert len([path for path in states.iterdir() if path.name.isdigit()]) == 2 * CORES

    project_on(orders, master, "spark.cores.max: '1'")
    orders.result()
    assert (partitions(orders), notices(orders)) == (str(2 * CORES), [])


@pytest.mark.slow
def test_the_targets_number_takes_precedence(orders: ProjectFolder, master: str) -> None:
    """The target's own number of partitions takes precedence, and the cluster is not asked."""
    project_on(orders, master, f"{PARTITIONS}: '5'")

    orders.result()

    assert (partitions(orders), notices(orders)) == ("5", [])
