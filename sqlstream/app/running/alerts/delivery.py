"""Delivers the messages of one channel in a background thread, in their order, until each has arrived."""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable
from contextvars import copy_context

from sqlstream.app.running.alerts.sender import DeliveryError, Sender
from sqlstream.app.running.alerts.store import AlertStore, Pending

FIRST_DELAY_SECONDS = 5.0
LONGEST_DELAY_SECONDS = 300.0
"""The delays before an attempt is repeated: they double."""

logger = logging.getLogger("sqlstream.alerts")


class Delivery:
    """Sends the messages in `store` for the channel `name`. `report` gets sentences for the user.

    If a message cannot be sent, the later ones wait. A message that its receiver refuses is dropped.
    """

    def __init__(
        self,
        name: str,
        sender: Sender,
        store: AlertStore,
        report: Callable[[str], None],
        first_delay_seconds: float = FIRST_DELAY_SECONDS,
    ) -> None:
        self.name, self.sender, self._store, self._report = name, sender, store, report
        self._first_delay = first_delay_seconds
        self._changed = threading.Condition()
        self._is_asked = True  # messages of earlier runs may wait
        self._is_busy = self._is_ending = self._must_wait = False
        self._next_at = 0.0
        self._failures = self._rounds = 0
        work = copy_context().run
        self._thread = threading.Thread(target=work, args=(self._work,), name=f"alerts to {name}", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def wake(self) -> None:
        """There may be new messages, or the sender may be ready now."""
        with self._changed:
            self._is_asked = True
            self._changed.notify_all()

    def flush(self, seconds: float) -> None:
        """Tries to send all messages at once, and waits up to `seconds` until that has worked or failed."""
        with self._changed:
            goal = self._rounds + self._is_busy + 1
            self._hurry()
            self._changed.wait_for(lambda: self._rounds >= goal, seconds)

    def stop(self) -> None:
        """Tries to send all messages for the last time, and then ends the thread."""
        with self._changed:
            self._is_ending = True
            self._hurry()

    def join(self, seconds: float) -> None:
        """Waits for the end of the thread, up to `seconds`."""
        self._thread.join(seconds)

    def _hurry(self) -> None:
        self._is_asked = True
        if not self._must_wait:
            self._next_at = 0.0
        self._changed.notify_all()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            with self._changed:
                while not self._is_ending and (delay := self._delay()) != 0.0:
                    self._changed.wait(delay)
                is_last = self._is_ending
                is_due = time.monotonic() >= self._next_at or (is_last and not self._must_wait)
                self._is_asked, self._is_busy = False, True
            is_done = is_due and self._send_all()
            with self._changed:
                self._is_busy = False
                self._is_asked = self._is_asked or not is_done
                self._rounds += 1
                self._changed.notify_all()

    def _delay(self) -> float | None:
        """Returns how long to wait before the next attempt, None: until somebody asks."""
        if not self._is_asked or not self.sender.is_ready:
            return None
        return max(self._next_at - time.monotonic(), 0.0)

    def _send_all(self) -> bool:
        """Sends all messages; returns whether none is left."""
        try:
            while self.sender.is_ready:
                pending = self._store.next(self.name)
                if pending is None:
                    return True
                if not self._send(pending):
                    return False
        except sqlite3.Error as error:
            logger.warning("the alerts to %s cannot be read: %s", self.name, error)
            self._retry_later(None)
        return False

    def _send(self, pending: Pending) -> bool:
        try:
            answer = self.sender.send(pending.message)
        except DeliveryError as error:
            return self._note_failure(pending, error)
        except Exception as error:  # a receiver can answer anything
            return self._note_failure(pending, DeliveryError(type(error).__name__))
        logger.info("alert %s was delivered to %s: %s", pending.message.id, self.name, answer)
        self._store.remove(pending.number)
        if self._failures:
            self._report(f"alerts are delivered to {self.name} again")
        self._failures = 0
        return True

    def _note_failure(self, pending: Pending, error: DeliveryError) -> bool:
        """Returns whether to continue with the next message."""
        logger.warning("alert %s was not delivered to %s: %s", pending.message.id, self.name, error)
        if error.is_refused:
            self._store.remove(pending.number)
            self._report(f"{self.name} refused an alert ({error}); it is dropped")
            return True
        self._failures += 1
        if self._failures == 1:
            self._report(f"alerts cannot be delivered to {self.name} ({error}); it is tried again")
        self._retry_later(error.retry_after)
        return False

    def _retry_later(self, retry_after: float | None) -> None:
        delay = min(self._first_delay * 2.0 ** min(max(self._failures - 1, 0), 64), LONGEST_DELAY_SECONDS)
        with self._changed:
            self._must_wait = retry_after is not None
            self._next_at = time.monotonic() + (delay if retry_after is None else retry_after)
