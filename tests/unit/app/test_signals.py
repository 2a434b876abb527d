"""Ctrl-C and SIGTERM while a run is prepared and while queries run."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sqlstream.app.running.signals import STOP_SIGNALS, StopRequestedError, stop_signals

HANDLERS = tuple[object, ...]


def handlers() -> HANDLERS:
    """Returns who answers to the signals that stop a run."""
    return tuple(signal.getsignal(number) for number in STOP_SIGNALS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_listener_hears_each_signal(number: signal.Signals) -> None:
    """The one from before it listened as well, and the second one counts: it stops a run at once."""
    requests: list[str] = []

    with stop_signals() as signals:
        os.kill(os.getpid(), number)
        with signals.forwarded_to(lambda: requests.append("stop")):
            os.kill(os.getpid(), number)

    assert requests == ["stop", "stop"]


def test_the_first_signal_waits_for_the_next_check() -> None:
    """While a run is prepared, what is half done is finished."""
    with stop_signals() as signals:
        signals.check()
        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(StopRequestedError):
            signals.check()


def test_a_second_signal_ends_the_preparation_at_once() -> None:
    """Downloading a target's packages may take minutes."""
    with stop_signals():
        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_the_handlers_before_come_back() -> None:
    """PySpark's own among them; what the caller had the process ignore, as nohup does, stays ignored."""
    before = handlers()

    with stop_signals():
        assert all(now != then or then is signal.SIG_IGN for now, then in zip(handlers(), before, strict=True))

    assert handlers() == before


def test_the_handlers_come_back_after_an_error() -> None:
    """A run that fails leaves Ctrl-C as it was."""
    before = handlers()

    with pytest.raises(RuntimeError, match="failed"), stop_signals():
        raise RuntimeError("failed")

    assert handlers() == before


def test_outside_the_main_thread_signals_stay_with_whoever_has_them() -> None:
    """Python lets no other thread install a handler, and a caller's own are not to be taken."""
    before = handlers()
    seen: list[HANDLERS] = []

    def run() -> None:
        with stop_signals():
            seen.append(handlers())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [before]
