"""Signals that arrive before a command has installed its handlers, if sqlstream is process 1 of a container."""

from __future__ import annotations

import os
import signal

ENDING = ("SIGTERM", "SIGHUP")
"""The signals of a supervisor and of a closed terminal. Python itself handles SIGINT from the start."""


def end_on_signals() -> None:
    """Makes SIGTERM and SIGHUP end this process if it is process 1, as they end any other process.

    The kernel drops a signal to process 1 that has no handler (pid_namespaces(7)). Without this, a signal that arrives
    while Python loads modules would be lost, and the supervisor would wait and then kill the process. `run` replaces
    the handlers with ones that stop queries after their batch.
    """
    if os.getpid() != 1:
        return
    for number in (getattr(signal, name) for name in ENDING):
        if signal.getsignal(number) is signal.SIG_DFL:  # nohup ignores SIGHUP
            # SystemExit could be caught by the code that the signal interrupts, and would change the exit code
            signal.signal(number, lambda ended_by, _frame: os._exit(128 + ended_by))
