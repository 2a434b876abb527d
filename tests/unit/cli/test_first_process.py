"""SIGTERM to process 1 while it still loads its modules."""

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
    """Runs a Python process that gets SIGTERM right after the first module of the command line is loaded."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [*before, sys.executable, "-c", SIGNALLED]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def can_be_process_1() -> bool:
    """Returns whether this machine allows a new PID namespace."""
    try:
        return subprocess.run([*NAMESPACE, "true"], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@pytest.mark.skipif(not can_be_process_1(), reason="no new space of process numbers is allowed here")
def test_process_1_ends_by_sigterm_before_its_commands_are_loaded() -> None:
    """Process 1 exits on SIGTERM with the usual exit code; without a handler the kernel would ignore the signal."""
    ended = run(*NAMESPACE)

    assert (ended.returncode, ended.stdout) == (128 + signal.SIGTERM, ""), ended.stderr


def test_other_processes_keep_the_default_handlers() -> None:
    """Any other process keeps the default handlers, because it may only use sqlstream as a library."""
    assert run().returncode == -signal.SIGTERM
