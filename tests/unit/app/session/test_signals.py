"""Ctrl-C and SIGTERM during the preparation of a run and during its queries."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from sqlstream.app.session.signals import STOP_SIGNALS, StopRequestedError, stop_signals

HANDLERS = tuple[object, ...]


def handlers() -> HANDLERS:
    """Returns the handlers of the signals that stop a run."""
    return tuple(signal.getsignal(number) for number in STOP_SIGNALS)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_listener_hears_each_signal(number: signal.Signals) -> None:
    """A listener receives an earlier signal as well as each new one."""
    requests: list[str] = []

    with stop_signals() as signals:
        os.kill(os.getpid(), number)
        with signals.forwarded_to(lambda: requests.append("stop")):
            os.kill(os.getpid(), number)

    assert requests == ["stop", "stop"]


def test_the_first_signal_waits_for_the_next_check() -> None:
    """The first signal during the preparation takes effect at the next check, so that the current step finishes."""
    with stop_signals() as signals:
        signals.check()
        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(StopRequestedError):
            signals.check()


def test_a_second_signal_ends_the_preparation_at_once() -> None:
    """A second signal ends the preparation at once, which helps during long package downloads."""
    with stop_signals():
        os.kill(os.getpid(), signal.SIGTERM)

        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGTERM)


def test_previous_handlers_are_restored() -> None:
    """The previous handlers are restored, including PySpark's; ignored signals stay ignored, as under nohup."""
    before = handlers()

    with stop_signals():
        assert all(now != then or then is signal.SIG_IGN for now, then in zip(handlers(), before, strict=True))

    assert handlers() == before


def test_previous_handlers_are_restored_after_an_error() -> None:
    """The previous handlers are restored after an error."""
    before = handlers()

    with pytest.raises(RuntimeError, match="failed"), stop_signals():
        raise RuntimeError("failed")

    assert handlers() == before


def test_handlers_stay_outside_the_main_thread() -> None:
    """Outside the main thread the handlers stay unchanged, because Python allows no other thread to set them."""
    before = handlers()
    seen: list[HANDLERS] = []

    def run() -> None:
        with stop_signals():
            seen.append(handlers())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()

    assert seen == [before]
