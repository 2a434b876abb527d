"""Sends alerts to a webhook, one POST for each message, or to a command, one process for each."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from typing import IO, Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from sqlstream.app.alerts.delivery import MAX_WORDS, DeliveryError
from sqlstream.app.alerts.payloads import AlertMessage, payload
from sqlstream.project.configuration.alerts import Channel
from sqlstream.spark.secrets import Secrets
from sqlstream.version import __version__

REFUSED = frozenset({400, 413, 415, 422})
"""The statuses with which a receiver refuses the message itself. The reasons of others can change: a key, a limit."""

LONGEST_RETRY_AFTER = 3_600.0
MAX_ANSWER = 2_000
"""The most bytes of an answer to read."""

KILL_SECONDS = 5.0
"""How long to wait for the end of a killed command."""


class WebhookSender:
    """Posts messages to the webhook of `channel`, through the proxies of the environment. It follows no redirects."""

    is_ready = True

    def __init__(self, channel: Channel, secrets: Secrets) -> None:
        self._channel, self._secrets = channel, secrets
        self._opener = build_opener(_NoRedirects())

    def send(self, message: AlertMessage) -> str:
        """Posts one message. Raises: DeliveryError."""
        try:
            with self._opener.open(self._request(message), timeout=self._channel.timeout_seconds) as answer:
                answer.read(MAX_ANSWER)
                return f"status {answer.status}"
        except HTTPError as error:
            with error:
                raise self._answered(error) from None
        except (OSError, http.client.HTTPException, ValueError) as error:  # its text could show the address
            raise DeliveryError(_reason(error)) from None

    def _request(self, message: AlertMessage) -> Request:
        url = self._secrets.resolve(self._channel.webhook or "").strip()
        if urlsplit(url).scheme not in ("http", "https"):
            raise DeliveryError("its address does not begin with https:// or http://")
        body = payload(message, self._channel.format, self._secrets.resolve(self._channel.routing_key or ""))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"sqlstream/{__version__}",
            "Idempotency-Key": message.id,
            **self._secrets.resolve_all(self._channel.headers),
        }
        return Request(url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310 - see the check of the scheme

    def _answered(self, error: HTTPError) -> DeliveryError:
        words = self._secrets.redact(_first_line(error))[:MAX_WORDS]
        after = _retry_after(error.headers.get("Retry-After"), datetime.now(UTC))
        answer = f"status {error.code}{f': {words}' if words else ''}"
        return DeliveryError(answer, after, is_refused=error.code in REFUSED)


def _first_line(error: HTTPError) -> str:
    """Returns the first line of the answer, or the words of its status."""
    try:
        lines = error.read(MAX_ANSWER).decode(errors="replace").strip().splitlines()
    except (OSError, http.client.HTTPException):
        lines = []
    # a page of HTML, as of a proxy, says nothing
    if lines and lines[0].isprintable() and not lines[0].startswith("<"):
        return lines[0]
    return HTTPStatus(error.code).phrase if error.code in set(HTTPStatus) else ""


def _reason(error: Exception) -> str:
    """Returns why no answer came, without the address."""
    cause = error.reason if isinstance(error, URLError) else error
    if isinstance(cause, TimeoutError):
        return "it did not answer in time"
    if isinstance(cause, OSError) and cause.strerror:
        return cause.strerror.lower()
    return "its address or a header is invalid" if isinstance(cause, ValueError) else type(cause).__name__


def _retry_after(value: str | None, now: datetime) -> float | None:
    """Returns the seconds of a Retry-After header, which has a number of seconds or a date (RFC 9110, 10.2.3)."""
    if value is None:
        return None
    try:
        seconds = float(value) if value.strip().isdigit() else _seconds_until(value, now)
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_RETRY_AFTER)


def _seconds_until(date: str, now: datetime) -> float:
    found = parsedate_to_datetime(date)
    return ((found if found.tzinfo else found.replace(tzinfo=UTC)) - now).total_seconds()


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str
    ) -> Request | None:
        """Follows no redirect: it would become a GET without the message."""
        del req, fp, code, msg, headers, newurl
        return None


class CommandSender:
    """Runs `command` in the folder of the project, without a shell. Exit code 0 means that the message is delivered."""

    is_ready = True

    def __init__(
        self, command: Sequence[str], folder: Path, env: Mapping[str, str], timeout_seconds: float, secrets: Secrets
    ) -> None:
        self._command, self._folder, self._env = list(command), folder, dict(env)
        self._timeout, self._secrets = timeout_seconds, secrets

    def send(self, message: AlertMessage) -> str:
        """Runs the command. Raises: DeliveryError."""
        try:
            process = subprocess.Popen(  # noqa: S603 - the user's own command
                self._command,
                cwd=self._folder,
                env=self._env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C of the run does not end it
            )
        except (OSError, ValueError) as error:
            raise DeliveryError((getattr(error, "strerror", None) or str(error)).lower()) from None
        output = self._finish(process, json.dumps(message.as_json()).encode() + b"\n")
        if process.returncode != 0:
            words = self._secrets.redact(output)[:MAX_WORDS]
            raise DeliveryError(f"exit code {process.returncode}{f': {words}' if words else ''}")
        return "exit code 0"

    def _finish(self, process: subprocess.Popen[bytes], text: bytes) -> str:
        """Returns the last line that the process printed. Kills it and its children after the timeout."""
        try:
            output, _ = process.communicate(text, self._timeout)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a child in another session may keep the output open
                process.communicate(timeout=KILL_SECONDS)
            raise DeliveryError("it did not end in time") from None
        lines = output.decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else ""
