"""`sqlstream ui`, `run --ui` and `docs serve`: serve the page of a project, or its generated documentation site."""

from __future__ import annotations

import secrets
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlstream.app.request import UI_PORT, ProjectRequest, UiRequest
from sqlstream.app.session.signals import stop_signals
from sqlstream.errors import UsageError
from sqlstream.history.store import History
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root

TOKEN_BYTES = 24


@dataclass(frozen=True)
class Listening:
    """An open port for the page, on which nothing answers yet."""

    request: UiRequest
    socket: socket.socket
    token: str | None = field(repr=False)

    def address(self, url: str) -> str:
        """Returns the address to open, with the token, of a server at `url`."""
        return f"{url}/?token={self.token}" if self.token else f"{url}/"


def listen(request: UiRequest) -> Listening:
    """Opens the port of the page. Raises: UsageError if it is taken, or the host or the token cannot be used."""
    from sqlstream.web.server.access import is_loopback  # loads Starlette
    from sqlstream.web.server.http import AddressError, PortTakenError, bind

    if request.token is not None and not request.token.strip():
        raise UsageError("--token is empty; remove it, or use a long random text")
    port = UI_PORT if request.port is None else request.port
    try:
        found = bind(request.host, port, searches=request.port is None)
    except PortTakenError as error:
        if request.port is None:
            raise UsageError(f"no port from {port} on is free on {request.host}; choose one with --port") from error
        raise UsageError(f"port {port} of {request.host} is in use; choose another one with --port") from error
    except AddressError as error:
        raise UsageError(f"cannot listen on {request.host}, port {port}: {error}") from error
    needs_token = request.token is None and not is_loopback(request.host)
    return Listening(request, found, secrets.token_urlsafe(TOKEN_BYTES) if needs_token else request.token)


@contextmanager
def serving(listening: Listening, project: ProjectRequest, history: History | None = None) -> Iterator[str]:
    """Serves the page of a project for the body, and yields its URL. `history` is that of the run in this process, if
    there is one. Raises: UsageError if there is no project.
    """
    from sqlstream.app.ui.data import ProjectData
    from sqlstream.web.server.access import Access
    from sqlstream.web.server.http import BackgroundServer
    from sqlstream.web.server.page_app import make_app

    host, token = listening.request.host, listening.token
    try:
        data = ProjectData(project, history)
        app = make_app(data, Access(host, listening.socket.getsockname()[1], token))
        server = BackgroundServer(app, listening.socket, host, "page")
    except BaseException:
        listening.socket.close()
        raise
    try:
        data.start()
        server.start()
        yield listening.address(server.url)
    finally:
        server.close()
        data.close()


def serve_page(request: UiRequest, project: ProjectRequest, notify: Callable[[str], None]) -> None:
    """Serves the page until SIGINT, SIGTERM or SIGHUP; `notify` gets its URL. Raises: UsageError."""
    find_project_root(project.folder)
    stopped = threading.Event()
    with stop_signals() as signals, signals.forwarded_to(stopped.set), serving(listen(request), project) as url:
        notify(url)
        stopped.wait()


def serve_docs(folder: Path, request: UiRequest, started: Callable[[str], None]) -> None:
    """Serves the site of the project in `folder` until KeyboardInterrupt. Calls `started` with the URL first.

    Port 0 is any free port. Raises: UsageError without a site, or if the address or the token cannot be used.
    """
    with serving_docs(folder, request) as url:
        started(url)
        threading.Event().wait()


@contextmanager
def serving_docs(folder: Path, request: UiRequest) -> Iterator[str]:
    """Serves the site for the body, and yields its URL. Raises: UsageError as `serve_docs` does."""
    from sqlstream.app.docs.generate import DOCS_FOLDER  # loads sqlglot
    from sqlstream.web.server.access import Access  # loads Starlette
    from sqlstream.web.server.http import BackgroundServer, make_site

    site = find_project_root(folder) / ARTIFACTS_FOLDER / DOCS_FOLDER
    if not (site / "index.html").is_file():
        raise UsageError(f"there is no {ARTIFACTS_FOLDER}/{DOCS_FOLDER}/; run `sqlstream docs generate` first")
    opened = listen(request)
    access = Access(request.host, opened.socket.getsockname()[1], opened.token)
    server = BackgroundServer(make_site(site, access), opened.socket, request.host, "site")
    server.start()
    try:
        yield opened.address(server.url)
    finally:
        server.close()
