"""The identity of a run's process."""

from __future__ import annotations

import os
import subprocess
import sys

from sqlstream.spark.storage.processes import process_start


def test_the_start_identifies_a_process() -> None:
    """The start identifies a process: it does not change, and two processes have different ones."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        assert process_start(os.getpid()) == process_start(os.getpid()) is not None
        assert process_start(other.pid) not in (None, process_start(os.getpid()))
        other.communicate(b"\n")


def test_an_ended_process_has_no_start() -> None:
    """A process that has ended has no start, even before its parent has waited for it."""
    other = subprocess.Popen([sys.executable, "-c", ""], stdout=subprocess.PIPE)
    assert other.stdout is not None
    other.stdout.read()  # it has closed all, and ends
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)

    assert process_start(other.pid) is None
    other.wait()
    other.stdout.close()
    assert process_start(other.pid) is None
