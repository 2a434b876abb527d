"""Writes alerts to a sink, one row for each message, while Spark runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from sqlstream.app.alerts.delivery import DeliveryError
from sqlstream.app.alerts.payloads import AlertMessage, AlertRow, alert_row
from sqlstream.errors import FindingsError
from sqlstream.spark.secrets import Secrets

Write = Callable[[int, Sequence[AlertRow]], None]
"""Writes the batch with a number. The same number again is the same batch."""


class SinkSender:
    """Writes messages with the function that `attach` gets. Before that, and after `detach`, they wait."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._write: Write | None = None
        self._numbers = count()
        self._numbered: tuple[str, int] = ("", 0)

    @property
    def is_ready(self) -> bool:
        """Whether Spark runs."""
        return self._write is not None

    def attach(self, write: Write) -> None:
        """Spark runs, and `write` adds rows to the sink."""
        self._write = write

    def detach(self) -> None:
        """Spark is about to stop."""
        self._write = None

    def send(self, message: AlertMessage) -> str:
        """Writes a row. Raises: DeliveryError."""
        write = self._write
        if write is None:
            raise DeliveryError("Spark does not run")
        if self._numbered[0] != message.id:
            self._numbered = (message.id, next(self._numbers))
        try:
            write(self._numbered[1], [alert_row(message)])
        except Exception as error:
            why = error.findings[0].why if isinstance(error, FindingsError) else str(error) or type(error).__name__
            raise DeliveryError(self._secrets.redact(str(why).strip().partition("\n")[0][:200])) from None
        return "1 row written"
