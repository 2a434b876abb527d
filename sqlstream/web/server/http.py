"""HTTP in a background thread: how a server binds, starts and stops, and what it serves besides a project's page."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Mapping
from contextvars import copy_context
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from sqlstream.web.server.access import Access, AccessControl

START_SECONDS = 10.0
"""How long the start may take."""

STOP_SECONDS = 2
"""How long open streams may take to end."""

BACKLOG = 128
PORTS_TRIED = 100
"""The number of ports to try when no port is given."""

Answer = tuple[int, bytes, str]
"""A status, a body and its content type."""


class AddressError(Exception):
    """The address cannot be used; the message says why."""


class PortTakenError(AddressError):
    """Another program listens on the port."""


def bind(host: str, port: int, *, searches: bool = False) -> socket.socket:
    """Returns a socket that listens on `host` and `port`, or with `searches` on the first free port from there on.

    Raises: PortTakenError; AddressError if the host has no such address.
    """
    last = min(port + PORTS_TRIED, 65536) - 1 if searches and port else port
    for number in range(port, last):
        try:
            return _bound(host, number)
        except PortTakenError:
            continue
    return _bound(host, last)


def _bound(host: str, port: int) -> socket.socket:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise AddressError(str(error.strerror or error)) from error
    family, kind, protocol, _, address = min(found, key=lambda each: each[0] != socket.AF_INET)  # localhost has two
    # asyncio sends answers without delay only if the socket names its protocol: otherwise each could take 40 ms
    listening = socket.socket(family, kind, protocol)
    try:
        # a server that starts again need not wait until the system has forgotten the old connections (TIME_WAIT)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listening.close()
        why = str(getattr(error, "strerror", None) or error)
        raise (PortTakenError if getattr(error, "errno", 0) == errno.EADDRINUSE else AddressError)(why) from error
    return listening


class BackgroundServer:
    """Serves `app` on `listening`, a socket from `bind` for `host`, in a thread from `start` until `close`."""

    def __init__(self, app: ASGIApp, listening: socket.socket, host: str, name: str) -> None:
        self._socket = listening
        port: int = listening.getsockname()[1]
        shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(host, host)  # noqa: S104
        self.url = f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"
        config = uvicorn.Config(
            app,
            log_config=None,  # uvicorn would configure the logging of the whole process
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=STOP_SECONDS,
            lifespan="on",
            ws="none",
            loop="asyncio",
            http="h11",
        )
        self._server = uvicorn.Server(config)
        work = copy_context().run  # so that the log of the command has its lines
        self._thread = threading.Thread(target=work, args=(self._server.run, [listening]), name=name, daemon=True)

    def start(self) -> None:
        """Begins to serve, in the background. The socket listens already, so no client is refused before."""
        self._thread.start()

    def close(self) -> None:
        """Ends all connections, and the thread."""
        self._server.should_exit = True
        if self._thread.ident is not None:
            self._thread.join(START_SECONDS)
        self._socket.close()


def make_endpoint(routes: Mapping[str, Callable[[str], Answer]]) -> Starlette:
    """Returns an application that answers the paths of `routes`. Each gets the Accept header, in one of several
    threads.
    """

    async def not_found(_request: Request, _error: Exception) -> Response:
        return PlainTextResponse(f"not found; there are {', '.join(routes)}\n", 404, {"Cache-Control": "no-store"})

    def answering(answer: Callable[[str], Answer]) -> Callable[[Request], Response]:
        def respond(request: Request) -> Response:  # not async: Starlette calls it in a thread
            status, body, content_type = answer(request.headers.get("Accept", ""))
            return Response(body, status, {"Cache-Control": "no-store", "Content-Type": content_type})

        return respond

    return Starlette(
        routes=[Route(path, answering(answer)) for path, answer in routes.items()],
        exception_handlers={404: not_found},
    )


SITE_HEADERS = {
    "cache-control": "no-cache",  # the files may change with the next `docs generate`
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
}
"""The headers of each response. The pages have their own policy for scripts and styles."""


def make_site(folder: Path, access: Access) -> Starlette:
    """Returns an application that serves the documentation site in `folder`."""
    return Starlette(
        routes=[Mount("/", StaticFiles(directory=folder, html=True))],
        middleware=[Middleware(AccessControl, access=access, added=SITE_HEADERS), Middleware(GZipMiddleware)],
        exception_handlers={HTTPException: _site_error},
    )


def _site_error(_request: Request, error: Exception) -> Response:
    found = error if isinstance(error, HTTPException) else HTTPException(500)
    return PlainTextResponse(f"{found.detail}\n", found.status_code)
