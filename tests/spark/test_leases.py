"""Two runs of one query on storage behind a URI, which has no file locks: only one of them writes."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sqlstream.app.request import ProjectRequest
from sqlstream.app.state.files import repair_checkpoint
from sqlstream.errors import FindingsError
from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from sqlstream.state.runs.events import Notice
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, order_rows, wait_for

Rows = Callable[[Path], list[dict[str, Any]]]

MODEL = "{{ config(sink='lake', trigger='100 milliseconds') }} select id from {{ source('shop', 'orders') }}"
STUCK = f"{MODEL} where id < 20 or reflect('java.lang.Thread', 'sleep', 600000L) is null"
"""The same query, with a third batch that does not end."""

STARTED: list[subprocess.Popen[str]] = []
"""The runs that a test has started."""


@pytest.fixture
def shop(orders: ProjectFolder) -> Iterator[ProjectFolder]:
    """A project whose storage Spark reaches through a mount. A heartbeat each second makes a takeover take 6 s."""
    mount = f"mounttable.{mounted(orders)}.link./store: 'file://{orders.root}/store'"
    settings = f"{{spark.hadoop.fs.viewfs.{mount}, {LEASE_PERIOD}: '1'}}"
    project = orders.root / "project.yml"
    uri = f"viewfs://{mounted(orders)}/store"
    project.write_text(project.read_text().replace("storage: store", f"storage: '{uri}', spark: {settings}"))
    (orders.root / "store").mkdir()
    orders.write({"models/first.sql": MODEL})
    yield orders
    for process in STARTED:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    STARTED.clear()


def mounted(shop: ProjectFolder) -> str:
    """Returns the name of the mounts of a test. Hadoop keeps a file system as long as the JVM lives."""
    return shop.root.name.replace("_", "-")


def written_ids(shop: ProjectFolder, read_parquet: Rows) -> list[int]:
    """Returns the ids in the output, which the sink's log lists by their URIs."""
    log = shop.root / "store/first/_spark_metadata"
    for entry in log.iterdir():
        if entry.name[0].isdigit():
            entry.write_text(entry.read_text().replace(f"viewfs://{mounted(shop)}/store", f"{shop.root}/store"))
    return sorted(row["id"] for row in read_parquet(shop.root / "store/first"))


def expected_ids(files: int) -> list[int]:
    """Returns the ids in the first `files` files of orders."""
    return [row["id"] for number in range(files) for row in order_rows(number)]


def lease_names(shop: ProjectFolder) -> set[str]:
    """Returns the files of the query's lease."""
    folder = shop.root / "store/queries/first/v1.lease"
    return {path.name for path in folder.iterdir() if not path.name.startswith(".")}


def waits(shop: ProjectFolder) -> list[str]:
    """Returns the messages of the last run about waiting for another one."""
    return [event.text for event in shop.events if isinstance(event, Notice) and "waiting at most" in event.text]


def start(shop: ProjectFolder, after: int) -> subprocess.Popen[str]:
    """Starts a run that does not end, and returns it after so many batches."""
    process = shop.command("run", "--log-format", "json")
    STARTED.append(process)
    for _ in range(after):
        wait_for(process, '"event": "batch"')
    return process


def end_of(process: subprocess.Popen[str]) -> str:
    """Lets a stopped run continue, and returns what it prints until its end with code 1."""
    os.killpg(process.pid, signal.SIGCONT)
    printed, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    assert process.returncode == 1
    return printed


@pytest.mark.slow
def test_a_second_run_is_refused(shop: ProjectFolder, read_parquet: Rows) -> None:
    """The refusal names the process. After a kill, the next run takes over at once, and each row is written once."""
    process = start(shop, after=1)

    with pytest.raises(FindingsError) as run:
        shop.run()
    with pytest.raises(FindingsError) as repair:
        repair_checkpoint(ProjectRequest(shop.root, env=dict(os.environ)), "first")

    for (finding,) in (run.value.findings, repair.value.findings):
        assert (finding.code, f"process {process.pid} on " in finding.why) == ("query-in-use", True)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    shop.run()
    assert waits(shop) == []
    assert {name.partition(".")[0] for name in lease_names(shop)} == {"2"}
    shop.run()
    assert waits(shop) == []
    assert written_ids(shop, read_parquet) == expected_ids(2)


def test_a_run_that_stalls_in_a_batch_is_taken_over(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A run that is suspended in a batch cannot finish it after another run has taken over; it ends with code 1."""
    shop.write({"models/first.sql": STUCK})
    process = start(shop, after=2)
    shop.rows("in/orders/2.json", order_rows(2), modified=2)
    shop.wait_for_batch(process, "first", 2)
    os.killpg(process.pid, signal.SIGSTOP)

    shop.write({"models/first.sql": MODEL})
    assert shop.result().rows_out == 5

    assert [f"process {process.pid} on " in text for text in waits(shop)] == [True]
    assert "query-lock-lost" in end_of(process)
    assert written_ids(shop, read_parquet) == expected_ids(3)


@pytest.mark.slow
def test_a_run_that_stalls_between_batches_is_taken_over(shop: ProjectFolder, read_parquet: Rows) -> None:
    """A run that is suspended between two batches starts none after another run has taken over."""
    process = start(shop, after=2)
    os.killpg(process.pid, signal.SIGSTOP)

    shop.rows("in/orders/2.json", order_rows(2), modified=2)
    assert shop.result().rows_out == 5

    assert "query-lock-lost" in end_of(process)
    shop.rows("in/orders/3.json", order_rows(3), modified=3)
    assert shop.result().rows_out == 5
    assert waits(shop) == []
    assert written_ids(shop, read_parquet) == expected_ids(4)
