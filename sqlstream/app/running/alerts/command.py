"""Passes alerts to a command: one process for each message, which gets JSON on its standard input."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sqlstream.app.running.alerts.sender import MAX_WORDS, DeliveryError
from sqlstream.spark.secrets import Secrets
from sqlstream.state.alerts.payloads import AlertMessage

KILL_SECONDS = 5.0
"""How long to wait for the end of a killed command."""


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
