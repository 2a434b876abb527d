"""Ctrl-C, SIGTERM and --for end a run after the current batch: no batch is cut short or repeated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sqlstream import ProjectRequest, RunRequest, run_models
from sqlstream.state.runs.events import QueryStarted, RunEvent, Status
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, descendants, read_proc_file, wait_for, wait_until

Rows = Callable[[Path], list[dict[str, Any]]]

SLOW = """{{ config(sink='lake', trigger='100 milliseconds') }}
select id, reflect('java.lang.Thread', 'sleep', cast(1500 as bigint)) as waited
from {{ source('shop', 'orders') }}
"""
"""A model whose rows each take a second and a half, so that a signal arrives during a batch."""


@pytest.fixture
def slow(folder: ProjectFolder) -> ProjectFolder:
    """A project with slow batches and more files than a test waits for."""
    folder.write({"models/slow.sql": SLOW})
    for number in range(50):
        folder.rows(f"in/orders/{number:02}.json", [{"id": number}], modified=number)
    return folder


WAYS = [
    pytest.param(signal.SIGINT, True, id="ctrl-c"),
    pytest.param(signal.SIGTERM, False, id="supervisor"),
    pytest.param(signal.SIGTERM, True, id="supervisor-of-groups"),
]
"""The signals to send, and whether they go to the whole process group or only to the command's process."""


def send(process: subprocess.Popen[str], number: signal.Signals, *, group: bool) -> str:
    """Sends a signal to a command or to its process group, and returns the rest of the output."""
    if group:
        os.killpg(process.pid, number)
    else:
        process.send_signal(number)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)
    return rest


@pytest.mark.slow
@pytest.mark.parametrize(("number", "group"), WAYS)
def test_a_signal_stops_after_the_running_batch(
    slow: ProjectFolder, number: signal.Signals, group: bool, read_parquet: Rows
) -> None:
    """After a signal offsets and commits agree, the output has the committed batches, and the exit code is 0."""
    process = slow.command("run", "--select", "slow")
    slow.wait_for_batch(process, "slow", 1)

    rest = send(process, number, group=group)

    assert process.returncode == 0, rest
    assert "Done. PASS=1" in rest
    committed = slow.committed("slow")
    assert len(committed) >= 2
    rows = sorted(row["id"] for row in read_parquet(slow.root / "store/slow"))
    assert rows == list(range(len(committed)))
    results = json.loads((slow.root / "target/run_results.json").read_text())
    assert results["results"][0]["batches"] == len(committed)


@pytest.mark.slow
def test_a_query_that_waits_for_its_trigger_stops_at_once(folder: ProjectFolder) -> None:
    """A query that waits an hour for its trigger stops without waiting."""
    folder.rows("in/orders/0.json", [{"id": 1}])
    folder.write(
        {"models/idle.sql": "{{ config(sink='lake', trigger='1 hour') }} select id from {{ source('shop', 'orders') }}"}
    )
    process = folder.command("run")
    wait_for(process, "idle batch 0:")

    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, rest
    assert folder.committed("idle") == {"0"}


@pytest.mark.slow
def test_a_second_signal_stops_now(folder: ProjectFolder) -> None:
    """A second signal interrupts the batch and names it; the next run repeats it."""
    folder.rows("in/orders/0.json", [{"id": 1}])
    folder.write({"models/stuck.sql": SLOW.replace("1500", "600000")})
    process = folder.command("run", "--log-format", "json")
    wait_for(process, '"query_started"')
    folder.wait_for_batch(process, "stuck", 0)

    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, rest
    assert '"status": "interrupted"' in rest
    assert not list((folder.root / "store/queries/stuck/v1/checkpoint/commits").glob("0"))


@pytest.mark.slow
def test_for_stops_by_itself(folder: ProjectFolder) -> None:
    """`--for` ends an endless run and announces it; JSON lines report each event, and the last line reports success."""
    folder.rows("in/orders/0.json", [{"id": 1}])
    folder.write({"models/endless.sql": "{{ config(sink='lake') }} select id from {{ source('shop', 'orders') }}"})
    process = folder.command("run", "--for", "5s", "--log-format", "json")

    out, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 0, out
    lines = [json.loads(line) for line in out.splitlines()]
    event_names = [line["event"] for line in lines]
    assert event_names[:3] == ["queries_chosen", "run_started", "query_started"]
    assert event_names[-2:] == ["query_ended", "done"]
    assert "the time limit was reached" in "".join(line["text"] for line in lines if line["event"] == "notice")
    assert lines[-2]["status"] in ("stopped", "interrupted")  # a slow machine may have been about to begin a batch
    assert lines[-1]["succeeded"] is True


def launches(process: subprocess.Popen[str]) -> bool:
    """Returns whether the launch of the JVM for the queries has begun."""
    return any("pyspark-shell" in read_proc_file(child, "cmdline") for child in descendants(process.pid))


@pytest.mark.slow
@pytest.mark.parametrize(("number", "group"), WAYS)
def test_a_signal_during_the_start_of_the_jvm_skips_queries(
    slow: ProjectFolder, number: signal.Signals, group: bool
) -> None:
    """A signal during the JVM's start is not lost: the run marks its query as skipped and exits with code 0."""
    process = slow.command("run", "--select", "slow")
    wait_until(process, lambda: launches(process))

    out = send(process, number, group=group)

    assert process.returncode == 0, out
    assert "stopped before any query started" in out
    results = json.loads((slow.root / "target/run_results.json").read_text())
    assert [result["status"] for result in results["results"]] == ["skipped"]
    assert not (slow.root / "store/queries/slow").exists()


def test_a_stop_between_two_starts_skips_the_second(orders: ProjectFolder) -> None:
    """After a stop between two starts the first query finishes its batch and the second is skipped; none fails."""
    model = "{{ config(sink='nowhere', trigger='1 hour') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/a.sql": model, "models/b.sql": model})

    def interrupt_first(event: RunEvent) -> None:
        if isinstance(event, QueryStarted):
            os.kill(os.getpid(), signal.SIGINT)

    outcome = run_models(RunRequest(ProjectRequest(orders.root)), interrupt_first)

    assert [result.status for result in outcome.results] == [Status.STOPPED, Status.SKIPPED]
    assert outcome.succeeded


@pytest.mark.slow
@pytest.mark.parametrize("stops", [False, True], ids=["running", "stopping"])
def test_a_jvm_that_dies_ends_the_run(slow: ProjectFolder, stops: bool) -> None:
    """A JVM that dies ends the run with code 1, one finding per query, written results and no traceback."""
    slow.write({"models/idle.sql": SLOW.replace("100 milliseconds", "1 hour").replace("1500", "1")})
    process = slow.command("run", "--log-format", "json")
    wait_for(process, '"batch_id": 0')
    slow.wait_for_batch(process, "slow", 1)
    if stops:
        process.send_signal(signal.SIGTERM)

    jvm = descendants(process.pid)[1]  # the launcher's scripts have become it
    os.kill(jvm, signal.SIGKILL)
    rest, _ = process.communicate(timeout=LONGEST_WAIT_SECONDS)

    assert process.returncode == 1, rest
    ended = [json.loads(line) for line in rest.splitlines() if line.startswith("{")]
    assert "query-failed" in {(line.get("error") or {}).get("code") for line in ended}
    assert "Traceback" not in rest
    assert (slow.root / "target/run_results.json").exists()
