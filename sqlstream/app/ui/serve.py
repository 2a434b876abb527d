"""`sqlstream ui`, `run --ui` and `docs serve`: serve the page of a project, or its generated documentation site."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import Listening, listen
from sqlstream.app.session.signals import stop_signals
from sqlstream.errors import UsageError
from sqlstream.history.store import History
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root


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
