"""`sqlstream docs serve`: serves the generated site on one address, until a signal."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sqlstream.app.docs.generate import DOCS_FOLDER
from sqlstream.app.request import UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root


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
