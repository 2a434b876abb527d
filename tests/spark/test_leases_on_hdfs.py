"""Two runs of one query with its checkpoint on a real HDFS: only one of them writes."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sqlstream.errors import FindingsError
from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.hdfs import Hdfs, start_hdfs
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, order_rows, wait_for

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
    process = orders.command("run", "--log-format", "json")
    try:
        for _ in range(2):
            wait_for(process, '"event": "batch"')
        with pytest.raises(FindingsError) as refused:
            orders.run()
        os.killpg(process.pid, signal.SIGSTOP)
        orders.rows("in/orders/2.json", order_rows(2), modified=2)
        assert orders.result().rows_out == 5
        os.killpg(process.pid, signal.SIGCONT)
        printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    assert [finding.code for finding in refused.value.findings] == ["query-in-use"]
    assert (process.returncode, "query-lock-lost" in printed) == (1, True)
    ids = sorted(row["id"] for row in read_parquet(orders.root / "first"))
    assert ids == [row["id"] for number in range(3) for row in order_rows(number)]
