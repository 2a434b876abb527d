"""`sqlstream dev` in a real terminal: rows or findings after each save, until Ctrl-C."""

from __future__ import annotations

import os
import pty
import re
import select
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

READS = "from {{ source('shop', 'orders') }} order by id"


class Terminal:
    """The command at the other end of a pseudo-terminal."""

    def __init__(self, root: Path, *arguments: str) -> None:
        self.printed = ""
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.chdir(root)
            os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
            os.environ["COLUMNS"] = "80"
            os.execv(sys.executable, [sys.executable, "-m", "sqlstream", *arguments])

    def wait_for(self, pattern: str) -> float:
        """Reads until new output matches, discards that output, and returns the elapsed seconds."""
        began = time.monotonic()
        while not (match := re.search(pattern, self.printed)):
            ready, _, _ = select.select([self._descriptor], [], [], LONGEST_WAIT_SECONDS)
            assert ready, f"{pattern!r} was not in {self.printed!r}"
            self.printed += os.read(self._descriptor, 65536).decode().replace("\r\n", "\n")
        self.printed = self.printed[match.end() :]
        return time.monotonic() - began

    def press_ctrl_c(self) -> int:
        """Sends Ctrl-C and returns the exit code."""
        os.write(self._descriptor, b"\x03")
        try:
            while os.read(self._descriptor, 65536):
                pass
        except OSError:
            pass  # the other end is closed
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)

    def close(self) -> None:
        """Ends the command if it still runs."""
        if self.pid:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        os.close(self._descriptor)


@pytest.fixture
def terminal(orders: ProjectFolder) -> Iterator[Terminal]:
    """`dev` on a model that selects the ids of orders."""
    orders.write({"models/ids.sql": f"select id {READS}"})
    before = {path.name for path in orders.root.iterdir()}
    started = Terminal(orders.root, "dev", "--select", "ids", "--limit", "2")
    yield started
    started.close()
    assert {path.name for path in orders.root.iterdir()} - before <= {"target", "logs"}


@pytest.mark.slow
def test_each_save_shows_rows_or_findings_until_ctrl_c(orders: ProjectFolder, terminal: Terminal) -> None:
    """`dev` reacts to a saved model, a mistake, its correction, a broken project file and an upstream change."""
    terminal.wait_for(r"Watching the project files(.*\n)+ 0\n 1\n")

    orders.write({"models/ids.sql": f"select id + 100 as id {READS}"})
    seconds = [terminal.wait_for(r"Changed: models/ids\.sql .*\n(.*\n)+100\n101\n")]

    orders.write({"models/ids.sql": f"select idd {READS}"})
    seconds.append(terminal.wait_for(r"models/ids\.sql:1:8: \[unknown-column\].*\n.*\n  fix: .*\n"))

    orders.write(
        {"models/ids.sql": "select id from {{ ref('base') }}", "models/base.sql": f"select id + 200 as id {READS}"}
    )
    seconds.append(terminal.wait_for(r"200\n201\n"))

    orders.write({"sinks.yml": "sinks: [nothing"})
    seconds.append(terminal.wait_for(r"sinks\.yml:\d+:\d+: \[yaml-syntax\]"))

    orders.write({"sinks.yml": "sinks: []", "models/base.sql": f"select id + 300 as id {READS}"})
    seconds.append(terminal.wait_for(r"300\n301\n"))

    assert terminal.press_ctrl_c() == 0
    print("seconds from save to answer:", [round(each, 2) for each in seconds])
