"""`sqlstream ui` and `run --ui`: serve the page of a project."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import Listening, listen
from sqlstream.app.session.signals import stop_signals
from sqlstream.history.store import History
from sqlstream.project.files.files import find_project_root


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
