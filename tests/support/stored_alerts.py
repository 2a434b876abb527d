"""Alerts and their messages in a store."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlstream.app.alerts.alerts_store import AlertStore
from sqlstream.app.alerts.evaluation import OpenAlert
from sqlstream.app.alerts.payloads import AlertMessage, RunNames, message_of
from sqlstream.project.configuration.alerts import AlertKind

NOW = datetime(2024, 1, 1, tzinfo=UTC)


def alert(number: int = 0) -> OpenAlert:
    """Returns an open alert."""
    return OpenAlert(f"orders_{number}", AlertKind.FAILED, f"id{number}", NOW, NOW, "it failed")


def message(number: int = 0, state: str = "raised") -> AlertMessage:
    """Returns a message about `alert(number)`."""
    names = RunNames("shop", "local", "run")
    return message_of(alert(number).changed(state), names, f"message{number}-{state}", "2024-01-01T00:00:00Z")


def put(store: AlertStore, number: int = 0, state: str = "raised", channel: str = "hook") -> None:
    """Stores a change of `alert(number)`, with a message for a channel."""
    kept = None if state == "resolved" else alert(number)
    store.add(alert(number).changed(state), kept, [(channel, message(number, state))])
