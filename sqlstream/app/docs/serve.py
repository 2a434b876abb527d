"""`sqlstream docs serve`: serves the generated site on one address, until a signal."""

from __future__ import annotations

import socket
from collections.abc import Callable
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from sqlstream.app.docs.generate import DOCS_FOLDER
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root


class _Handler(SimpleHTTPRequestHandler):
    """Serves files, without a line for each request and without lists of folders."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is that of the standard library
        """Ignores requests."""

    def end_headers(self) -> None:
        """Adds headers: the site may change with the next `docs generate`, and is no part of other pages."""
        self.send_header("Cache-Control", "no-cache")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("X-Frame-Options", "DENY")
        super().end_headers()

    def list_directory(self, path: object) -> None:
        """Refuses: the site has a page for everything."""
        del path
        self.send_error(404)


def serve_docs(folder: Path, host: str, port: int, started: Callable[[str], None]) -> None:
    """Serves the site of the project in `folder` until KeyboardInterrupt. Calls `started` with the URL first.

    Port 0 is any free port. Raises: UsageError without a site, or if the address cannot be used.
    """
    with docs_server(folder, host, port) as server:
        shown = f"[{host}]" if ":" in host else host
        started(f"http://{shown}:{server.server_address[1]}/")
        server.serve_forever(poll_interval=0.2)


def docs_server(folder: Path, host: str, port: int) -> ThreadingHTTPServer:
    """Returns the server of the site, which listens already. Raises: UsageError as `serve_docs` does."""
    site = find_project_root(folder) / ARTIFACTS_FOLDER / DOCS_FOLDER
    if not (site / "index.html").is_file():
        raise UsageError(f"there is no {ARTIFACTS_FOLDER}/{DOCS_FOLDER}/; run `sqlstream docs generate` first")
    kind = _Server6 if ":" in host else ThreadingHTTPServer
    try:
        return kind((host, port), partial(_Handler, directory=str(site)))
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"cannot listen on {host}:{port}: {reason.lower()}; use another --port") from error


class _Server6(ThreadingHTTPServer):
    """A server on an IPv6 address."""

    address_family = socket.AF_INET6
