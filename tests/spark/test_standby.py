"""`run --standby`: a run that waits for another one, and takes over exactly where that one stopped."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.spark.conftest import ProjectFolder, java_below, order_rows, wait_for

Read = Callable[[Path], list[dict[str, Any]]]

PLAIN = "{{ config(sink='lake') }} select id, kind, amount from {{ source('shop', 'orders') }}"
SUMS = "{{ config(sink='table', output_mode='update') }} select kind, %s as amount from {{ source('shop', 'orders') }} group by kind"


@contextmanager
def running(folder: ProjectFolder, *options: str) -> Iterator[subprocess.Popen[str]]:
    """Runs the project in another process, which is killed in the end if it is still there."""
    process = folder.command("run", "--log-format", "json", *options)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def stopped(process: subprocess.Popen[str]) -> int:
    """Stops a run as a service manager does, and returns its exit code."""
    process.send_signal(signal.SIGTERM)
    process.communicate()
    return process.returncode


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["python", "java"])
def test_a_standby_takes_over_from_a_killed_run(orders: ProjectFolder, read_parquet: Read, victim: str) -> None:
    """After `kill -9` of a run or of its JVM, the standby goes on where it stopped, and each row is written once."""
    orders.write({"models/plain.sql": PLAIN})
    with running(orders) as first:
        for _ in range(2):
            wait_for(first, '"event": "batch"')
        with running(orders, "--standby") as second:
            wait_for(second, "standby: the query of")
            os.kill(first.pid if victim == "python" else java_below(first.pid), signal.SIGKILL)
            orders.rows("in/orders/2.json", order_rows(2), modified=2)
            wait_for(second, "takes over")
            wait_for(second, '"event": "batch"')
            assert stopped(second) == 0

    assert sorted(row["id"] for row in read_parquet(orders.root / "store/plain")) == [
        10 * file + row for file in range(3) for row in range(5)
    ]


@pytest.mark.slow
def test_only_one_of_two_standbys_takes_over(orders: ProjectFolder) -> None:
    """When the first run is stopped, one standby takes over. The other keeps waiting, and a signal ends it with code 0."""
    orders.write({"models/plain.sql": PLAIN})
    with running(orders) as first:
        wait_for(first, '"event": "batch"')
        with running(orders, "--standby") as second:
            wait_for(second, "standby: the query of")
            assert stopped(first) == 0
            wait_for(second, "takes over")
            wait_for(second, '"event": "query_started"')
            with running(orders, "--standby") as third:
                wait_for(third, "standby: the query of")
                third.send_signal(signal.SIGTERM)
                printed, _ = third.communicate()
            assert stopped(second) == 0

    assert "query_started" not in printed
    assert third.returncode == 0


@pytest.mark.slow
def test_a_standby_that_cannot_run_fails_at_once(orders: ProjectFolder) -> None:
    """A standby whose query the plan refuses ends with code 1, while the first run goes on."""
    kept = SUMS.replace("sink='table'", "sink='nowhere'")
    orders.write({"models/sums.sql": kept % "sum(amount)"})
    with running(orders) as first:
        wait_for(first, '"event": "batch"')
        orders.write({"models/sums.sql": kept % "max(amount)"})
        with running(orders, "--standby") as second:
            printed, _ = second.communicate()
        is_running = first.poll() is None
        assert stopped(first) == 0

    assert (second.returncode, "state-change" in printed, is_running) == (1, True, True)
