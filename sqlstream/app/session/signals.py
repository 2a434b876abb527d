"""Turns Ctrl-C, SIGTERM and SIGHUP into a request to stop, for the duration of a run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = tuple(number for number in signal.Signals if number.name in ("SIGINT", "SIGTERM", "SIGHUP"))
"""Ctrl-C, a supervisor's request, and a closed terminal. Windows has no SIGHUP."""

CHECK_SECONDS = 0.1
"""How often a wait checks for a signal."""


class StopRequestedError(Exception):
    """A stop was requested before any query started."""


class StopSignals:
    """Counts the signals so far, and decides what they do.

    While a run is prepared, the first signal takes effect at the next `check`, and the second one stops at once. During
    `forwarded_to`, a listener handles signals. After that, signals are ignored, because nothing is left to stop.
    """

    def __init__(self) -> None:
        self._count = 0
        self._listener: Callable[[], None] | None = None

    def receive(self) -> None:
        """Handles one signal. Raises: KeyboardInterrupt for the second one while a run is prepared."""
        self._count += 1
        if self._listener is not None:
            self._listener()
        elif self._count > 1:
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raises: StopRequestedError if a stop was requested."""
        if self._count:
            raise StopRequestedError

    def sleep(self, seconds: float) -> None:
        """Waits. Raises: StopRequestedError as soon as a signal arrives."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.check()
            time.sleep(min(CHECK_SECONDS, left))

    def install(self) -> None:
        """Installs the handlers. Call it again after Spark starts, because PySpark installs a handler that cancels all
        jobs.

        Does nothing outside the main thread. Under nohup, SIGHUP stays ignored.
        """
        if not _in_main_thread():
            return
        for number in STOP_SIGNALS:
            if number.name != "SIGHUP" or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda _number, _frame: self.receive())

    @contextmanager
    def forwarded_to(self, listener: Callable[[], None]) -> Iterator[None]:
        """Calls `listener` for each signal during the body, and for one that came before. Ignores signals after it."""
        self._listener = listener
        if self._count:
            listener()
        try:
            yield
        finally:
            self._listener = lambda: None


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Yields the signals that arrive during the body, and restores the previous handlers at the end."""
    signals = StopSignals()
    before = {number: signal.getsignal(number) for number in STOP_SIGNALS}
    signals.install()
    try:
        yield signals
    finally:
        for number, handler in before.items() if _in_main_thread() else ():
            # None means a handler that was not installed from Python, which Python cannot restore
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


@contextmanager
def interruptible() -> Iterator[StopSignals]:
    """Lets each signal during the body raise KeyboardInterrupt at once, for commands that have nothing to lose."""
    try:
        with stop_signals() as signals, signals.forwarded_to(_interrupt):
            yield signals
    except StopRequestedError as error:
        raise KeyboardInterrupt from error


def _interrupt() -> None:
    raise KeyboardInterrupt


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()
