"""After `kill -9` of any command at any moment, each version of an output holds each row once, and so does the plain
path.

SQLSTREAM_CHAOS sets the number of cycles (`make chaos`: fifty), SQLSTREAM_SEED the seed that chooses commands and
moments.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.conftest import ProjectFolder, java_below, order_rows

Rows = Callable[[Path], list[dict[str, Any]]]

CYCLES = int(os.environ.get("SQLSTREAM_CHAOS", "7"))
SEED = int(os.environ.get("SQLSTREAM_SEED", "24"))

RUN = ("run", "--available-now")
COMMANDS: tuple[tuple[tuple[str, ...], float, int], ...] = (
    (RUN, 9, 4),
    ((*RUN, "--parallel", "hourly", "--full-refresh"), 9, 2),
    ((*RUN, "--parallel", "hourly"), 9, 3),
    (("promote", "hourly"), 1, 2),
    (("rollback", "hourly"), 1, 2),
    ((*RUN, "--full-refresh"), 9, 1),
    (("state", "repair", "hourly"), 1, 1),
)
"""Each command, the longest time in seconds after which it is killed, and how often it is chosen."""

HOURLY = """{{ config(sink='lake') }}
select /*+ WATERMARK(ts, '1 minute') */ window.start as hour, count(*) as orders
from {{ source('shop', 'orders') }} group by window(ts, '1 hour')
"""


class Hours:
    """The orders of one hour in each file."""

    def __init__(self, folder: ProjectFolder) -> None:
        self._folder = folder
        self.number = 0

    def add(self, count: int) -> None:
        """Writes the files of the next hours."""
        for _ in range(count):
            at = f"2024-01-{1 + self.number // 24:02}T{self.number % 24:02}:00:00Z"
            rows = [{**row, "ts": at} for row in order_rows(self.number)]
            self._folder.rows(f"in/orders/{self.number}.json", rows, modified=self.number)
            self.number += 1

    @property
    def closed(self) -> dict[str, int]:
        """The rows of a query that has read everything: all hours but the last two are closed."""
        return {f"{1 + hour // 24:02} {hour % 24:02}": 5 for hour in range(self.number - 2)}


def kill(process: subprocess.Popen[str], *, java: bool) -> None:
    """Kills Python, or the JVM below it if it has started."""
    target = process.pid
    if java:
        with suppress(StopIteration):
            target = java_below(process.pid)
    os.kill(target, signal.SIGKILL)


def interrupted(folder: ProjectFolder, command: tuple[str, ...], seconds: float, *, java: bool) -> str:
    """Runs a command, and kills it after some time. Returns how it ended."""
    process = folder.command(*command)
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        kill(process, java=java)
    printed, _ = process.communicate(timeout=120)
    assert "Traceback" not in printed, printed
    missing = process.returncode == 2 and "has no" in printed
    is_killed = process.returncode < 0 or java
    assert process.returncode == 0 or is_killed or missing or "version-empty" in printed, printed
    return "ended" if process.returncode == 0 else "killed" if is_killed else "nothing to do"


def finished(folder: ProjectFolder, *command: str) -> None:
    """Runs a command to its end."""
    process = folder.command(*command)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed


@pytest.mark.slow
def test_chaos(folder: ProjectFolder, read_parquet: Rows) -> None:
    """Runs, parallel runs, full refreshes, promotions, rollbacks and repairs are killed at random moments, in Python
    and in the JVM. In the end the current version, the parallel one and the previous one are complete and exact.
    """
    folder.write({"models/hourly.sql": HOURLY})
    hours, order = Hours(folder), random.Random(SEED)
    hours.add(3)
    weights = [weight for _, _, weight in COMMANDS]
    done: Counter[str] = Counter()
    for number in range(CYCLES):
        hours.add(1)
        ((command, longest, _),) = order.choices(COMMANDS, weights) if number >= len(COMMANDS) else [COMMANDS[number]]
        how = interrupted(folder, command, order.uniform(0.1, longest), java=number % 2 == 1)
        done[f"{' '.join(command)}: {how}"] += 1
    print("\n".join(f"{count} x {what}" for what, count in sorted(done.items())))

    parts = Parts(folder)
    for version, command in ((parts.current, RUN), (parts.parallel, (*RUN, "--parallel", "hourly"))):
        if version is not None:
            finished(folder, *command)
            check(folder, version, read_parquet, hours)
            if version == parts.current:
                check_plain_path(folder, read_parquet, hours)
    finished(folder, *RUN, "--parallel", "hourly", "--full-refresh")
    finished(folder, "promote", "hourly")
    check(folder, Parts(folder).current, read_parquet, hours)
    check_plain_path(folder, read_parquet, hours)
    finished(folder, "rollback", "hourly")
    hours.add(1)
    finished(folder, *RUN)
    check(folder, Parts(folder).current, read_parquet, hours)
    check_plain_path(folder, read_parquet, hours)


class Parts:
    """Which versions are current and parallel."""

    def __init__(self, folder: ProjectFolder) -> None:
        root = folder.root / "store/queries/hourly"
        file = root / "versions.json"
        newest = max((int(path.name[1:]) for path in root.glob("v*") if path.name[1:].isdigit()), default=1)
        found: dict[str, Any] = {"current": newest, "parallel": None}
        if file.exists():
            found = json.loads(file.read_text())
        self.current = int(found["current"])
        self.parallel: int | None = found["parallel"]
        assert self.current != self.parallel


def check(folder: ProjectFolder, version: int, read_parquet: Rows, hours: Hours) -> None:
    """Checks that the output of a version has each row once, as Spark reads it."""
    place = folder.root / f"store/hourly.v{version}"
    exact(read_parquet(place if version > 1 or place.exists() else folder.root / "store/hourly"), hours)


def check_plain_path(folder: ProjectFolder, read_parquet: Rows, hours: Hours) -> None:
    """Checks that the plain path has each row of the current version once, for Spark and for readers that list it."""
    plain = folder.root / "store/hourly"
    exact(read_parquet(plain), hours)
    if plain.is_symlink() and (plain.parent / plain.readlink()).name != "v1":  # it may have files of killed batches
        exact(pq.read_table(plain).to_pylist(), hours)


def exact(rows: list[dict[str, Any]], hours: Hours) -> None:
    """Checks that the rows are those of a query that has read everything, each once."""
    assert len(rows) == len(hours.closed)
    assert {f"{row['hour']:%d %H}": row["orders"] for row in rows} == hours.closed
