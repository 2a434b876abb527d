"""SIGTERM to a process 1 that still loads its modules."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SIGNALLED = """
import sys
import sqlstream.cli
import os, signal
assert "click" not in sys.modules, "something large was loaded before the handlers were there"
os.kill(os.getpid(), signal.SIGTERM)
print("lost", os.getpid())
"""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


def run(*before: str) -> subprocess.CompletedProcess[str]:
    """A Python that gets SIGTERM when the first module of the command line has been loaded, and nothing else."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*before, sys.executable, "-c", SIGNALLED]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def can_be_process_1() -> bool:
    """Whether this machine lets us have a space of process numbers."""
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_be_process_1(), reason="no new space of process numbers is allowed here")
def test_process_1_ends_by_sigterm_before_its_commands_are_loaded() -> None:
    """With the code that shells give for it; without a handler the kernel would drop the signal."""
    ended = run(*NAMESPACE)

    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, ""), ended.stderr


def test_any_other_process_keeps_what_the_system_does() -> None:
    """Python as a library of somebody else's process has no say in its signals."""
    assert run().returncode == -signal.SIGTERM
