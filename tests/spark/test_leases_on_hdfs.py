"""Two runs of one query with its checkpoint on a real HDFS: only one of them writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.hdfs import Hdfs, start_hdfs
from tests.spark.conftest import ProjectFolder, order_rows

MODEL = "{{ config(sink='lake', trigger='100 milliseconds') }} select id from {{ source('shop', 'orders') }}"


@pytest.fixture(scope="module")
def hdfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hdfs]:
    """A running HDFS."""
    server = start_hdfs(tmp_path_factory.mktemp("hdfs"))
    yield server
    server.stop()


@pytest.mark.slow
def test_a_stalled_run_is_taken_over(
    hdfs: Hdfs, orders: ProjectFolder, read_parquet: Callable[[Path], list[dict[str, Any]]]
) -> None:
    """An active run keeps its query. A suspended one is taken over, and then writes nothing and ends with code 1."""
    project, sinks = orders.root / "project.yml", orders.root / "sinks.yml"
    target = f"storage: '{hdfs.uri}/shop', spark: {{{LEASE_PERIOD}: '1'}}"
    project.write_text(project.read_text().replace("storage: store", target))
    sinks.write_text(sinks.read_text().replace("'{{ model.name }}'", f"'file://{orders.root}/{{{{ model.name }}}}'"))
    orders.write({"models/first.sql": MODEL})
    orders.take_over_a_stalled_run()

    ids = sorted(row["id"] for row in read_parquet(orders.root / "first"))
    assert ids == [row["id"] for number in range(3) for row in order_rows(number)]
