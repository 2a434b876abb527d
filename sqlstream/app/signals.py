"""Ctrl-C and SIGTERM as a request, for as long as queries run."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def stop_on_signals(request_stop: Callable[[], None]) -> Iterator[None]:
    """Calls `request_stop` for each Ctrl-C or SIGTERM.

    PySpark's own handler, which cancels every running job, is put aside and comes back afterwards. Outside the main
    thread signals stay with whoever has them.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [signal.signal(number, lambda _number, _frame: request_stop()) for number in STOP_SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(STOP_SIGNALS, before, strict=True):
            # None stands for a handler that was not installed from Python, which Python cannot put back
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
