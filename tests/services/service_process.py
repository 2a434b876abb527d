"""Processes of test servers: free ports, waiting until they answer, and stopping them."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

LOOPBACK = "127.0.0.1"
START_SECONDS = 120.0
"""A server that does not answer after this time has failed; an idle machine needs about three seconds."""
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.05


def free_ports(count: int) -> list[int]:
    """Returns different ports on loopback that nobody listens on now."""
    with ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in sockets]


@dataclass
class ServiceProcess:
    """A server as a process that listens on `port`; `log` is the file with everything that it prints."""

    command: Sequence[str]
    port: int
    log: Path
    env: Mapping[str, str] | None = None
    user: str | None = None
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Starts the server and returns when its port accepts connections. Raises: RuntimeError with its log."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=self.env, user=self.user
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.command[0]} did not start:\n{self.log.read_text(errors='replace')[-4000:]}")
            time.sleep(LOOK_SECONDS)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ends the server with a signal and waits for its end."""
        if self._process is None or self._process.poll() is not None:
            return
        self._process.send_signal(number)
        self._process.wait(STOP_SECONDS)

    @property
    def is_running(self) -> bool:
        """Whether the server has been started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        """The number of the process; it has been started."""
        assert self._process is not None
        return self._process.pid

    def pause(self) -> None:
        """Freezes the server: connections hang, as on a machine that does not answer."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Lets a frozen server go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _answers(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self.port), timeout=1).close()
        except OSError:
            return False
        return True
