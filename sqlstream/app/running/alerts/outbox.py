"""Keeps the changes of alerts in the file, records them as events, and wakes the channels, in a background thread.

The thread of the observers must not wait for a disk, so it only puts changes into a queue.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Sequence
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime
from queue import Empty, SimpleQueue
from uuid import uuid4

from sqlstream.app.running.alerts.delivery import Delivery
from sqlstream.app.running.alerts.store import AlertStore
from sqlstream.state.alerts.evaluation import OpenAlert
from sqlstream.state.alerts.payloads import RunNames, message_of
from sqlstream.state.runs.events import AlertChanged
from sqlstream.times import utc_text

logger = logging.getLogger("sqlstream.alerts")

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
        self._changes: SimpleQueue[Change | None] = SimpleQueue()
        self._left = 0
        self._handled = threading.Condition()
        self._thread = threading.Thread(target=copy_context().run, args=(self._work,), name="alerts", daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

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
