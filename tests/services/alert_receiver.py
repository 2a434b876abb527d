"""A real HTTP server that gets alerts, and can be slow, down, or answer with errors."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

LONGEST_WAIT_SECONDS = 120.0
"""No test depends on a shorter time."""


@dataclass(frozen=True)
class Received:
    """A request: its path, its headers in lower case, its body from JSON, and the status of the answer."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    status: int


@dataclass
class Receiver:
    """What a server got. `answers` are the statuses and headers of the next answers; then it answers 200. While
    `is_hanging`, it does not answer.
    """

    port: int = 0
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    received: list[Received] = field(default_factory=list)
    waiting: int = 0
    _free: threading.Event = field(default_factory=threading.Event)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @property
    def url(self) -> str:
        """The address of the server."""
        return f"http://127.0.0.1:{self.port}/hook"

    def hang(self) -> None:
        """Answers nothing until `release`."""
        self._free.clear()

    def release(self) -> None:
        """Answers all requests."""
        self._free.set()

    def handle(self, path: str, headers: dict[str, str], body: dict[str, Any]) -> tuple[int, dict[str, str]]:
        """Notes a request, and returns the status and the headers of its answer."""
        with self._changed:
            self.waiting += 1
            self._changed.notify_all()
        self._free.wait(LONGEST_WAIT_SECONDS)
        with self._changed:
            status, more = self.answers.pop(0) if self.answers else (200, {})
            self.received.append(Received(path, headers, body, status))
            self.waiting -= 1
            self._changed.notify_all()
        return status, more

    def wait(self, condition: Callable[[], object]) -> None:
        """Waits until `condition` is true after a request. Fails if it never is."""
        with self._changed:
            assert self._changed.wait_for(condition, LONGEST_WAIT_SECONDS), self.received

    @property
    def accepted(self) -> list[dict[str, Any]]:
        """The bodies that were answered with 200."""
        return [each.body for each in self.received if each.status == 200]

    def states(self) -> list[tuple[str, str]]:
        """Returns the kinds and the states of the accepted messages."""
        return [(body["alert"], body["state"]) for body in self.accepted]


def alerts_to(root: Path, url: str, rules: str = "{}") -> None:
    """Sends the alerts of the project in a folder to a receiver."""
    project = root / "project.yml"
    kept = project.read_text().partition("alerts:")[0]
    project.write_text(f'{kept}alerts:\n  rules: {rules}\n  notify: [{{name: hook, webhook: "{url}"}}]\n')


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    """Starts a receiver on a port (0: a free one), and stops it."""
    receiver = Receiver()
    receiver.release()
    server = ThreadingHTTPServer(("127.0.0.1", port), _handler(receiver))
    server.daemon_threads = True
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        receiver.release()
        server.shutdown()
        server.server_close()


def _handler(receiver: Receiver) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            status, more = receiver.handle(self.path, headers, json.loads(body))
            try:
                self.send_response(status)
                for name, value in {"Content-Length": "0", **more}.items():
                    self.send_header(name, value)
                self.end_headers()
            except OSError:
                pass  # the client has gone away

        def log_message(self, *_: object) -> None:
            pass

    return Handler
