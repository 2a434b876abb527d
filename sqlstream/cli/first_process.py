"""Signals that come before a command has handlers of its own, in a container that has no other process 1."""

from __future__ import annotations

import os
import signal

ENDING = ("SIGTERM", "SIGHUP")
"""What a supervisor or a closed terminal sends. Python itself handles SIGINT from its start on."""


def end_on_signals() -> None:
    """Has SIGTERM and SIGHUP end this process if it is process 1, as they end any other process.

    The kernel drops a signal to process 1 that has no handler (pid_namespaces(7)), so that one which comes while Python
    still loads modules would be lost, and the supervisor would wait until it kills the process. `run` replaces the
    handlers by those that stop queries after their batch.
    """
    if os.getpid() != 1:
        return
    for number in (getattr(signal, name) for name in ENDING):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            signal.signal(number, lambda ended_by, _frame: os._exit(128 + ended_by))
