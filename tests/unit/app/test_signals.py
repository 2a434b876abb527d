"""Ctrl-C and SIGTERM while queries run."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sqlstream.app.signals import STOP_SIGNALS, stop_on_signals

HANDLERS = tuple[object, ...]


def handlers() -> HANDLERS:
    """Returns who answers to the signals that stop a run."""
    return tuple(signal.getsignal(number) for number in STOP_SIGNALS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_request_each_time(number: signal.Signals) -> None:
    """The second one counts as well: it stops a run at once."""
    requests: list[str] = []

    with stop_on_signals(lambda: requests.append("stop")):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)

    assert requests == ["stop", "stop"]


def test_the_handlers_before_come_back() -> None:
    """PySpark's own among them."""
    before = handlers()

    with stop_on_signals(lambda: None):
        assert not set(handlers()) & set(before)

    assert handlers() == before


def test_the_handlers_come_back_after_an_error() -> None:
    """A run that fails leaves Ctrl-C as it was."""
    before = handlers()

    with pytest.raises(RuntimeError, match="failed"), stop_on_signals(lambda: None):
        raise RuntimeError("failed")

    assert handlers() == before


def test_outside_the_main_thread_signals_stay_with_whoever_has_them() -> None:
    """Python lets no other thread install a handler, and a caller's own are not to be taken."""
    before = handlers()
    seen: list[HANDLERS] = []

    def run() -> None:
        with stop_on_signals(lambda: None):
            seen.append(handlers())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [before]
