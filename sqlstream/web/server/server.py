"""The server of the page, in a background thread."""

from __future__ import annotations

import errno
import socket
import threading

import uvicorn

from sqlstream.web.server.access import Access
from sqlstream.web.server.app import make_app
from sqlstream.web.server.protocol import UiData

START_SECONDS = 10.0
"""How long the start may take."""

STOP_SECONDS = 2
"""How long open streams may take to end."""

BACKLOG = 128
PORTS_TRIED = 100
"""The number of ports to try when no port is given."""


class PortTakenError(Exception):
    """Another program listens on the port."""


class AddressError(Exception):
    """The address cannot be used; the message says why."""


def bind(host: str, port: int, *, searches: bool) -> socket.socket:
    """Returns a socket that listens on `host` and `port`, or with `searches` on the first free port from there on.

    Raises: PortTakenError; AddressError if the host has no such address.
    """
    for number in range(port, min(port + PORTS_TRIED, 65536) if searches and port else port + 1):
        try:
            return _bound(host, number)
        except PortTakenError:
            continue
    raise PortTakenError


def _bound(host: str, port: int) -> socket.socket:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[
            0
        ]
    except OSError as error:
        raise AddressError(str(error.strerror or error)) from error
    listening = socket.socket(family, kind)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError from error
        raise AddressError(str(error.strerror or error)) from error
    return listening


class PageServer:
    """Serves the page of `data` on `listening`, a socket from `bind`, until `close`."""

    def __init__(self, data: UiData, listening: socket.socket, host: str, token: str | None) -> None:
        self._socket = listening
        self._host = host
        self.port: int = listening.getsockname()[1]
        self._token = token
        app = make_app(data, Access(host, self.port, token))
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            lifespan="on",
            ws="none",
            loop="asyncio",
            http="h11",
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="page", daemon=True)

    @property
    def url(self) -> str:
        """The address to open, with the token."""
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(self._host, self._host)  # noqa: S104
        shown = f"[{shown}]" if ":" in shown else shown
        return f"http://{shown}:{self.port}/" + (f"?token={self._token}" if self._token else "")

    def start(self) -> None:
        """Begins to serve, in the background."""
        self._thread.start()

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def close(self) -> None:
        """Ends all connections, and the thread."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(START_SECONDS)
        self._socket.close()
