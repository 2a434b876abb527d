"""A schema registry for tests: a small server with the documented interface, or a real Apicurio Registry.

`start_registry` starts Apicurio if `SQLSTREAM_REGISTRY` is `apicurio` (`make registry`): its archive has 150 MB.
"""

from __future__ import annotations

import json
import os
import re
import threading
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from tests.services.apicurio import start_apicurio
from tests.services.service_process import LOOPBACK

USER = "Basic YXBwOmh1bnRlcjI="
"""The header of the user `app` with the password `hunter2`, the only one that the small server lets in."""


@dataclass
class SchemaRegistry:
    """A running registry: its address, and a function that stops it."""

    url: str
    stop: Callable[[], None]

    def register(self, subject: str, schema: object, references: list[dict[str, object]] | None = None) -> int:
        """Adds a version to a subject and returns its id."""
        body = {"schema": json.dumps(schema), "references": references or []}
        request = urllib.request.Request(
            f"{self.url}/subjects/{subject}/versions",
            data=json.dumps(body).encode(),
            headers={"Content-Type": "application/vnd.schemaregistry.v1+json", "Authorization": USER},
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return int(json.load(response)["id"])


def start_registry(folder: Path) -> SchemaRegistry:
    """Starts a registry without schemas."""
    if os.environ.get("SQLSTREAM_REGISTRY") == "apicurio":
        process, url = start_apicurio(folder)
        return SchemaRegistry(url, process.stop)
    server = ThreadingHTTPServer((LOOPBACK, 0), _handler(_Schemas()))
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def stop() -> None:
        server.shutdown()
        server.server_close()

    return SchemaRegistry(f"http://{LOOPBACK}:{server.server_address[1]}", stop)


@dataclass
class _Schemas:
    """All versions by subject; ids are numbered over all subjects."""

    subjects: dict[str, list[dict[str, object]]] = field(default_factory=dict)

    def add(self, subject: str, entry: dict[str, object]) -> dict[str, object]:
        """Adds a version."""
        versions = self.subjects.setdefault(subject, [])
        number = 101 + sum(map(len, self.subjects.values()))
        versions.append({"subject": subject, "version": len(versions) + 1, "id": number, **entry})
        return {"id": number}

    def get(self, path: str) -> object:
        """Returns the answer to a request. Raises: LookupError for one that does not exist."""
        match = re.fullmatch(r"/subjects/([^/]+)/versions(?:/(\d+))?", path.partition("?")[0])
        if match is None:
            raise LookupError(path)
        versions = self.subjects[unquote(match[1])]
        return versions[int(match[2]) - 1] if match[2] else [each["version"] for each in versions]


def _handler(schemas: _Schemas) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.headers["Authorization"] != USER:
                self._send(401, {"error_code": 401})
                return
            try:
                self._send(200, schemas.get(self.path))
            except LookupError:
                self._send(404, {"error_code": 40401})

        def do_POST(self) -> None:
            entry = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self._send(200, schemas.add(unquote(self.path.split("/")[2]), entry))

        def _send(self, status: int, answer: object) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_arguments: object) -> None:
            """Prints nothing."""

    return Handler
