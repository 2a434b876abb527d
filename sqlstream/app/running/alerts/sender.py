"""What sends one message to a channel, and how that can fail."""

from __future__ import annotations

from typing import Protocol

from sqlstream.state.alerts.payloads import AlertMessage

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
