"""The page of a project, served on loopback for tests."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from sqlstream import ProjectRequest
from sqlstream.app.request import UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.app.ui.serve import serving

SECONDS = 60
"""How long an answer may take on a busy machine."""


@dataclass(frozen=True)
class Answer:
    """The answer to a request."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Page:
    """A page that is served at `url` until `close`."""

    url: str
    close: Callable[[], None]

    @property
    def port(self) -> int:
        """Its port."""
        return urlsplit(self.url).port or 80

    def ask(self, path: str, headers: Mapping[str, str] | None = None, method: str = "GET") -> Answer:
        """Returns the answer to one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, headers=dict(headers or {}))
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, found, answer.read())
        finally:
            connection.close()

    def get(self, path: str) -> Any:
        """Returns the JSON of an answer."""
        answer = self.ask(path)
        assert answer.status == 200, (path, answer.status, answer.body[:500])
        return json.loads(answer.body)


@contextmanager
def page_of(project: ProjectRequest, request: UiRequest | None = None) -> Iterator[Page]:
    """Serves the page of a project for the body."""
    with ExitStack() as stack:
        url = stack.enter_context(serving(listen(request or UiRequest(port=0)), project))
        yield Page(url, stack.close)
