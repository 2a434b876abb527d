"""`run --standby`: a run that waits for another one, and takes over exactly where that one stopped.

SQLSTREAM_KILLS sets the number of runs that are killed one after the other (`make kills`: ten).
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from sqlstream.spark.storage.query_locks import LEASE_PERIOD
from tests.services.s3 import BUCKET, PASSWORD, S3
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder, java_below, order_rows, wait_until

Read = Callable[[Path], list[dict[str, Any]]]

KILLS = int(os.environ.get("SQLSTREAM_KILLS", "2"))

PLAIN = "{{ config(sink='lake') }} select id, kind, amount from {{ source('shop', 'orders') }}"
SUMS = "{{ config(sink='table', output_mode='update') }} select kind, %s as amount from {{ source('shop', 'orders') }} group by kind"

WAITS, TAKES_OVER, STARTED, BATCH = (
    "standby: the query of",
    "takes over",
    '"event": "query_started"',
    '"event": "batch"',
)


class Run:
    """A run in another process, and the lines that it has printed."""

    def __init__(self, folder: ProjectFolder, *options: str) -> None:
        self.process = folder.command("run", "--log-format", "json", *options)
        self.lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        self.lines.extend(self.process.stdout or ())

    def has(self, text: str, times: int = 1) -> bool:
        """Returns whether it has printed so many lines with `text`."""
        return sum(text in line for line in tuple(self.lines)) >= times

    def wait_for(self, text: str, times: int = 1) -> None:
        """Waits until it has printed so many lines with `text`."""
        try:
            wait_until(self.process, lambda: self.has(text, times))
        except BaseException as error:
            raise AssertionError(f"{text!r} was not among the lines:\n{self.text}") from error

    def send(self, number: int) -> None:
        """Sends a signal to Python and to its JVM."""
        os.killpg(self.process.pid, number)

    def end(self, number: int | None = None) -> int:
        """Sends a signal to Python, waits for the end of the run, and returns its exit code."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(LONGEST_WAIT_SECONDS)
        self._reader.join(LONGEST_WAIT_SECONDS)
        return code

    @property
    def text(self) -> str:
        """What it has printed."""
        return "".join(self.lines)


@contextmanager
def running(folder: ProjectFolder, *options: str) -> Iterator[Run]:
    """Runs the project in another process, which is killed in the end if it is still there."""
    run = Run(folder, *options)
    try:
        yield run
    finally:
        with suppress(ProcessLookupError):
            run.send(signal.SIGKILL)
        run.end()


@contextmanager
def with_two_standbys(folder: ProjectFolder) -> Iterator[tuple[Run, Run, Run]]:
    """A run with two batches, and two runs that wait for it."""
    with running(folder) as first:
        first.wait_for(BATCH, 2)
        with running(folder, "--standby") as second, running(folder, "--standby") as third:
            for standby in (second, third):
                standby.wait_for(WAITS)
            yield first, second, third


@pytest.fixture(params=["folder", "s3"])
def shop(request: pytest.FixtureRequest, orders: ProjectFolder, monkeypatch: pytest.MonkeyPatch) -> ProjectFolder:
    """A project with two files of orders, whose storage has file locks, or leases with heartbeats of a second. Its
    output is on this machine.
    """
    if request.param == "s3":
        s3: S3 = request.getfixturevalue("s3")
        monkeypatch.setenv("SQLSTREAM_SECRET_S3", PASSWORD)
        storage = f"s3a://{BUCKET}/{orders.root.name}"
        target = {"master": "local[1]", "storage": storage, "spark": {**s3.settings(), LEASE_PERIOD: "1"}}
        orders.write({"project.yml": f"name: shop\nversion: 1.0.0\ntargets: {json.dumps({'local': target})}\n"})
    path = f"file://{orders.root}/store/{{{{ model.name }}}}"
    orders.write(
        {
            "sinks.yml": f"sinks: [{{name: lake, format: parquet, path: '{path}'}}]\n",
            "models/plain.sql": PLAIN,
            "models/another.sql": PLAIN,
        }
    )
    return orders


def is_on_s3(shop: ProjectFolder) -> bool:
    """Returns whether the storage of the project has leases."""
    return "s3a://" in (shop.root / "project.yml").read_text()


def expected_ids(files: int) -> list[int]:
    """Returns the ids in the first `files` files of orders."""
    return [row["id"] for number in range(files) for row in order_rows(number)]


def ids(shop: ProjectFolder, read_parquet: Read, model: str = "plain") -> list[int]:
    """Returns the sorted ids in an output."""
    return sorted(row["id"] for row in read_parquet(shop.root / f"store/{model}"))


@pytest.mark.slow
def test_a_standby_takes_over_from_a_killed_run(shop: ProjectFolder, read_parquet: Read) -> None:
    """`kill -9` ends a run, then its JVM, then the standby that took over, and so on, each after rows that it may have
    written or not: the next standby goes on where it stopped, and each row is written once.
    """
    files = 2
    with ExitStack() as runs:
        active = runs.enter_context(running(shop))
        active.wait_for(BATCH, 2)
        for kill in range(KILLS):
            standby = runs.enter_context(running(shop, "--standby"))
            standby.wait_for(WAITS)
            shop.rows(f"in/orders/{files}.json", order_rows(files), modified=files)
            os.kill(java_below(active.process.pid) if kill % 2 else active.process.pid, signal.SIGKILL)
            shop.rows(f"in/orders/{files + 1}.json", order_rows(files + 1), modified=files + 1)
            standby.wait_for(TAKES_OVER)
            standby.wait_for(BATCH, 2)
            files, active = files + 2, standby
        assert active.end(signal.SIGTERM) == 0
    shop.run()

    assert [ids(shop, read_parquet, model) for model in ("plain", "another")] == [expected_ids(files)] * 2


@pytest.mark.slow
def test_one_of_two_standbys_takes_over(shop: ProjectFolder, read_parquet: Read) -> None:
    """A run is killed, and then the standby that took over stops: each time exactly one standby takes over. The other one
    waits, and a signal ends it with code 0.
    """
    with with_two_standbys(shop) as (first, second, third):
        first.send(signal.SIGKILL)
        wait_until(second.process, lambda: second.has(STARTED, 2) or third.has(STARTED, 2))
        active, waiting = (second, third) if second.has(STARTED) else (third, second)
        shop.rows("in/orders/2.json", order_rows(2), modified=2)
        active.wait_for(BATCH, 2)
        assert (waiting.has(TAKES_OVER), waiting.has(STARTED), waiting.process.poll()) == (False, False, None)

        assert active.end(signal.SIGTERM) == 0
        shop.rows("in/orders/3.json", order_rows(3), modified=3)
        waiting.wait_for(BATCH, 2)
        with running(shop, "--standby") as fourth:
            fourth.wait_for(WAITS)
            assert fourth.end(signal.SIGTERM) == 0
        assert waiting.end(signal.SIGTERM) == 0

    assert [run.text.count(TAKES_OVER) for run in (active, waiting, fourth)] == [1, 1, 0]
    assert [ids(shop, read_parquet, model) for model in ("plain", "another")] == [expected_ids(4)] * 2


@pytest.mark.slow
def test_a_run_that_hangs(shop: ProjectFolder, read_parquet: Read) -> None:
    """Where runs have leases, one of two standbys takes over from a suspended run, which then ends with code 1. A file
    lock stays until the process ends, so both wait, and the run goes on.
    """
    with with_two_standbys(shop) as (first, second, third):
        first.send(signal.SIGSTOP)
        shop.rows("in/orders/2.json", order_rows(2), modified=2)
        if is_on_s3(shop):
            wait_until(second.process, lambda: second.has(STARTED, 2) or third.has(STARTED, 2))
            active, waiting = (second, third) if second.has(STARTED) else (third, second)
            active.wait_for(BATCH, 2)
            first.send(signal.SIGCONT)
            assert (first.end(), first.has("query-lock-lost")) == (1, True), first.text
        else:
            with running(shop, "--standby") as fourth:  # it looks as long as it takes to start
                fourth.wait_for(WAITS)
            first.send(signal.SIGCONT)
            active, waiting = first, second
            first.wait_for(BATCH, 6)
        assert (waiting.has(TAKES_OVER), waiting.process.poll()) == (False, None)
        assert waiting.end(signal.SIGTERM) == 0
        assert active.end(signal.SIGTERM) == 0

    assert [ids(shop, read_parquet, model) for model in ("plain", "another")] == [expected_ids(3)] * 2


@pytest.mark.slow
def test_standbys_of_a_new_project(shop: ProjectFolder, read_parquet: Read) -> None:
    """Of two standbys that start at the same time, without a checkpoint, one runs. The other waits, also if it has
    found all queries free, and takes over later.
    """
    with running(shop, "--standby") as one, running(shop, "--standby") as two:
        wait_until(one.process, lambda: one.has(BATCH, 4) or two.has(BATCH, 4))
        active, waiting = (one, two) if one.has(BATCH) else (two, one)
        waiting.wait_for("standby: ")
        assert not waiting.has(STARTED)

        assert active.end(signal.SIGTERM) == 0
        shop.rows("in/orders/2.json", order_rows(2), modified=2)
        waiting.wait_for(BATCH, 2)
        assert waiting.end(signal.SIGTERM) == 0

    assert [ids(shop, read_parquet, model) for model in ("plain", "another")] == [expected_ids(3)] * 2


@pytest.mark.slow
def test_a_standby_has_no_lock_while_it_waits(shop: ProjectFolder, read_parquet: Read) -> None:
    """While a standby waits for one query, others can run another one of its queries again and again, also as a new
    version. The standby continues the newest one.
    """
    shop.run("another")
    with running(shop, "--select", "plain") as first:
        first.wait_for(BATCH, 2)
        with running(shop, "--standby") as second:
            second.wait_for("standby: the query of `plain`")
            for _ in range(3):
                shop.run("another")
            shop.run("another", full_refresh=True)
            assert first.end(signal.SIGTERM) == 0
            shop.rows("in/orders/2.json", order_rows(2), modified=2)
            second.wait_for(BATCH, 2)
            assert second.end(signal.SIGTERM) == 0

    assert second.text.count(WAITS) == 1  # the runs of the other query are no news
    assert ids(shop, read_parquet) == expected_ids(3)
    assert ids(shop, read_parquet, "another.v2") == expected_ids(3)


@pytest.mark.slow
def test_a_standby_that_cannot_run_fails_at_once(orders: ProjectFolder) -> None:
    """A standby whose query the plan refuses ends with code 1, while the first run goes on."""
    kept = SUMS.replace("sink='table'", "sink='nowhere'")
    orders.write({"models/sums.sql": kept % "sum(amount)"})
    with running(orders) as first:
        first.wait_for(BATCH)
        orders.write({"models/sums.sql": kept % "max(amount)"})
        with running(orders, "--standby") as second:
            code = second.end()
        is_running = first.process.poll() is None
        assert first.end(signal.SIGTERM) == 0

    assert (code, second.has("state-change"), is_running) == (1, True, True)


@pytest.mark.slow
def test_a_standby_whose_spark_is_killed_ends(shop: ProjectFolder) -> None:
    """A standby that could not take over ends with code 1, and says why. The first run goes on."""
    with running(shop) as first:
        first.wait_for(BATCH, 2)
        with running(shop, "--standby") as second:
            second.wait_for(WAITS)
            os.kill(java_below(second.process.pid), signal.SIGKILL)
            code = second.end()
        assert first.end(signal.SIGTERM) == 0

    assert (code, second.has("the Java process of Spark ended")) == (1, True), second.text
