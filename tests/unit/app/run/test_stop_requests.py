"""A stop request reaches the runner, whenever its signal arrives."""

from __future__ import annotations

import faulthandler
import signal
import time
from typing import Any

from sqlstream.app.run.runner import POLL_SECONDS, Runner, RunOrders
from sqlstream.spark.secrets import Secrets
from sqlstream.state.runs.limits import RunLimits


def outlast(deadline: float) -> None:
    """Returns after a time of the monotonic clock."""
    while time.monotonic() < deadline:
        pass


def test_a_slow_signal_handler_does_not_stop_the_runner() -> None:
    """The runner goes on if the handler returns after the end of the wait that the signal interrupted.

    Without an event, a lock that waits forever would keep the runner from the next check for a stop request.
    """
    checks: Any = None
    runner = Runner(Secrets({}), lambda _: None, RunLimits(), RunOrders((), checks))
    seen: list[int] = []

    def handle(number: int, _frame: object) -> None:
        outlast(time.monotonic() + 2 * POLL_SECONDS)
        seen.append(number)

    before = signal.signal(signal.SIGALRM, handle)
    faulthandler.dump_traceback_later(60, exit=True)
    signal.setitimer(signal.ITIMER_REAL, POLL_SECONDS / 2)
    try:
        runner._handle_event()
    finally:
        faulthandler.cancel_dump_traceback_later()
        signal.signal(signal.SIGALRM, before)
    assert seen == [signal.SIGALRM]
