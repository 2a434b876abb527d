"""A run in a real terminal: the table, Ctrl-C, and the final screen."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

import pytest

from tests.spark.conftest import LONGEST_WAIT_SECONDS, ProjectFolder

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
"""Terminal control sequences for cursor movement and colour."""


class Terminal:
    """A terminal of a given size that runs a command; the tests press keys and read the screen."""

    def __init__(self, root: Path, arguments: list[str], columns: int) -> None:
        self._keys, inside = pty.openpty()
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 30, columns, 0, 0))
        sizes = {"COLUMNS", "LINES"}  # those of the terminal in which the tests run
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sqlstream", *arguments],
            cwd=root,
            env={name: value for name, value in os.environ.items() if name not in sizes}
            | {"PYTHONPATH": str(Path(__file__).parents[2]), "TERM": "xterm-256color"},
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(inside)
        self.screen = ""

    def press(self, keys: bytes) -> None:
        """Types `keys`."""
        os.write(self._keys, keys)

    def read_until(self, text: str | None) -> str:
        """Reads until `text` appears or, for None, until the command ends; a watchdog kills a stuck command."""
        before = signal.signal(signal.SIGALRM, lambda _n, _f: os.killpg(self.process.pid, signal.SIGKILL))
        signal.alarm(LONGEST_WAIT_SECONDS)
        try:
            with suppress(OSError):  # the other end is closed
                while text is None or text not in self.screen:
                    self.screen += os.read(self._keys, 65536).decode("utf-8", "replace")
        finally:
            signal.alarm(0)
            signal.signal(signal.SIGALRM, before)
        assert text is None or text in self.screen, self.screen
        return self.screen


@pytest.mark.slow
@pytest.mark.parametrize("columns", [140, 40])
def test_a_run_in_a_terminal(orders: ProjectFolder, columns: int) -> None:
    """The table shows the batches, Ctrl-C ends the query after its batch, and the last table stays on the screen."""
    model = "{{ config(sink='lake', trigger='100 milliseconds') }} select id from {{ source('shop', 'orders') }}"
    orders.write({"models/all.sql": model})
    terminal = Terminal(orders.root, ["run"], columns)
    terminal.read_until("running")
    while len(_batches(orders)) < 2:
        terminal.read_until("\x1b[1A")  # another frame
        terminal.screen = ""

    terminal.press(b"\x03")
    terminal.read_until(None)

    assert terminal.process.wait() == 0
    last = CONTROL.sub("", terminal.screen.rsplit("query ", 1)[1]).splitlines()
    row = next(line for line in last if line.startswith("all "))
    assert row.split()[:2] == ["all", "stopped"]
    assert "10" in row.split()
    assert last[-1] == "Done. PASS=1 WARN=0 ERROR=0 SKIP=0 TOTAL=1"
    assert len(row.rstrip()) <= columns
    assert ("watermark" in last[0]) is (columns == 140)


def _batches(folder: ProjectFolder) -> list[str]:
    path = folder.root / "logs/events.jsonl"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line for line in lines if json.loads(line)["event"] == "batch"]
