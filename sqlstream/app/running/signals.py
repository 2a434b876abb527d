"""Ctrl-C, SIGTERM and SIGHUP as a request, for as long as a run lasts."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""Ctrl-C, a supervisor's request, and a terminal that is closed; Windows does not have the last."""


class StopAskedError(Exception):
    """A stop was asked for before any query was started."""


class StopSignals:
    """What Ctrl-C and SIGTERM have asked for so far, and who is told.

    While a run is prepared the first one waits for the next `check`, and a second one stops at once. While queries run,
    `passed_to` says who decides. After that nothing is left to stop.
    """

    def __init__(self) -> None:
        self._count = 0
        self._listener: Callable[[], None] | None = None

    def receive(self) -> None:
        """Notes one signal. Raises: KeyboardInterrupt for the second one while a run is prepared."""
        self._count += 1
        if self._listener is not None:
            self._listener()
        elif self._count > 1:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises: StopAskedError once a stop was asked for."""
        if self._count:
            raise StopAskedError

    def install(self) -> None:
        """Has the signals come here; again after Spark's start, where PySpark puts in a handler that cancels all jobs.

        Outside the main thread signals stay with whoever has them.
        """
        if _in_main_thread():
            for number in STOP_SIGNALS:
                if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN:  # as under nohup
                    signal.signal(number, lambda _number, _frame: self.receive())

    @contextmanager
    def passed_to(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` for each signal during the body, and for one that came before; later ones are ignored."""
        self._listener = listener
        if self._count:
            listener()
        try:
            yield
        finally:
            self._listener = lambda: None


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Gives the signals that arrive during the body, and restores the earlier handlers afterwards."""
    signals = StopSignals()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    signals.install()
    try:
        yield signals
    finally:
        for number, handler in before.items():
            if _in_main_thread():
                # None stands for a handler that was not installed from Python, which Python cannot put back
                signal.signal(number, signal.SIG_DFL if handler is None else handler)


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
