"""Keeps the messages of alerts in a file, and delivers those of each channel in a background thread, in order, until
each has arrived.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime
from queue import Empty, Queue
from typing import Protocol
from uuid import uuid4

from sqlstream.app.alerts.alerts_store import AlertStore, Pending
from sqlstream.app.alerts.evaluation import OpenAlert
from sqlstream.app.alerts.payloads import AlertMessage, RunNames, message_of
from sqlstream.state.runs.events import AlertChanged
from sqlstream.times import utc_text

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
            goal = self._rounds + self._is_busy + 1  # an attempt that runs now may have missed the newest message
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
        # a receiver that says when to try again (Retry-After) is not asked before, also not at the end of the run
        if not self._must_wait:
            self._next_at = 0.0
        self._changed.notify_all()

    def _work(self) -> None:
        is_last = False
        while not is_last:
            with self._changed:
                while not self._is_ending and (delay := self._delay()) != 0.0:
                    self._changed.wait(delay)
                # after `stop` there is exactly one more attempt
                is_last = self._is_ending
                is_due = time.monotonic() >= self._next_at or (is_last and not self._must_wait)
                self._is_asked, self._is_busy = False, True
            is_done = is_due and self._send_all()
            with self._changed:
                self._is_busy = False
                # a message came during the attempt, or one is left
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
        # 2.0 ** 1024 overflows
        delay = min(self._first_delay * 2.0 ** min(max(self._failures - 1, 0), 64), LONGEST_DELAY_SECONDS)
        with self._changed:
            self._must_wait = retry_after is not None
            self._next_at = time.monotonic() + (delay if retry_after is None else retry_after)


MAX_WORDS = 200
"""How many characters of an answer go into logs."""


class DeliveryError(Exception):
    """A message was not delivered: why, as a phrase without secrets. `retry_after` is how long the receiver asks to
    wait, in seconds. If `is_refused`, the receiver will never accept this message.
    """

    def __init__(self, why: str, retry_after: float | None = None, *, is_refused: bool = False) -> None:
        super().__init__(why)
        self.retry_after, self.is_refused = retry_after, is_refused


class Sender(Protocol):
    """Sends messages to one channel, in the thread of the channel."""

    @property
    def is_ready(self) -> bool:
        """Whether messages can be sent now."""

    def send(self, message: AlertMessage) -> str:
        """Sends a message; returns what the receiver answered, as a phrase. Raises: DeliveryError."""


# Keeps the changes of alerts in the file, records them as events, and wakes the channels, in a background thread.
#
# The thread of the observers must not wait for a disk, so it only puts changes into a queue.


TAKE_OVER_SECONDS = 300.0
"""How often a run looks for messages of runs that have ended, such as that of a killed container."""


@dataclass(frozen=True)
class Change:
    """A change of an alert at the time `at`. `alert` is the alert after it, None if it is resolved."""

    event: AlertChanged
    alert: OpenAlert | None
    at: datetime


@dataclass(frozen=True)
class OutboxTexts:
    """The names of the run in messages, how to remove secrets from texts, and who gets events and sentences."""

    run: RunNames
    redact: Callable[[str], str]
    emit: Callable[[AlertChanged], None]
    report: Callable[[str], None]


class Outbox:
    """Takes changes from `put` until `end`."""

    def __init__(
        self,
        store: AlertStore,
        deliveries: Sequence[Delivery],
        texts: OutboxTexts,
        take_over_seconds: float = TAKE_OVER_SECONDS,
    ) -> None:
        self._store, self._deliveries, self._texts = store, tuple(deliveries), texts
        self._take_over_seconds = take_over_seconds
        self._save: Callable[[], None] = lambda: None
        self._changes: Queue[Change | None] = Queue()  # SimpleQueue.get can hang after a signal
        self._left = 0
        self._handled = threading.Condition()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="alerts", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def call_after_changes(self, save: Callable[[], None]) -> None:
        """Calls `save` after each change that is in the file."""
        self._save = save

    def put(self, change: Change) -> None:
        """Adds a change. Returns at once."""
        with self._handled:
            self._left += 1
        self._changes.put(change)

    def join(self, seconds: float) -> None:
        """Waits until all changes are in the file, up to `seconds`."""
        with self._handled:
            self._handled.wait_for(lambda: self._left == 0, seconds)

    def end(self, seconds: float) -> None:
        """Handles the changes so far, and ends the thread. Waits up to `seconds`."""
        self._changes.put(None)
        self._thread.join(seconds)

    def _work(self) -> None:
        while (change := self._next()) is not None:
            try:
                self._handle(change)
            except Exception:  # one alert must not stop the others
                logger.exception("an alert was lost")
            with self._handled:
                self._left -= 1
                self._handled.notify_all()

    def _next(self) -> Change | None:
        """Returns the next change, None at the end. Until it comes, takes over messages of runs that have ended."""
        while True:
            try:
                return self._changes.get(timeout=self._take_over_seconds)
            except Empty:
                self._take_over()

    def _take_over(self) -> None:
        try:
            self._store.take_over()
        except sqlite3.Error as error:
            logger.warning("the messages of earlier runs cannot be taken over: %s", error)
        for delivery in self._deliveries:
            delivery.wake()

    def _handle(self, change: Change) -> None:
        texts = self._texts
        event = replace(change.event, message=texts.redact(change.event.message))
        alert = None if change.alert is None else replace(change.alert, message=texts.redact(change.alert.message))
        if event.state != "open":
            self._keep(event, alert, change.at)
            self._save()
            for delivery in self._deliveries:
                delivery.wake()
        texts.emit(event)

    def _keep(self, event: AlertChanged, alert: OpenAlert | None, at: datetime) -> None:
        time = utc_text(at)
        message = message_of(event, self._texts.run, uuid4().hex, time)
        messages = [(delivery.name, message) for delivery in self._deliveries]
        try:
            self._store.add(event, alert, messages)
        except sqlite3.Error as error:
            self._texts.report(f"logs/alerts.sqlite cannot be written ({error}); alerts do not outlive this run")
            self._store.use_memory(str(error))
            self._store.add(event, alert, messages)
