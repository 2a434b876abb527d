"""What the client of schema registries says, and to whom it sends credentials."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from sqlstream.spark.reading.message_formats.schema_registry import RegistryClient, RegistryError


@contextmanager
def server(status: int, body: str, headers: dict[str, str]) -> Iterator[tuple[str, list[dict[str, str]]]]:
    """Yields the address of a server that answers everything the same, and the headers that it gets."""
    seen: list[dict[str, str]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(dict(self.headers))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=running.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{running.server_port}", seen
    running.shutdown()


def test_a_redirect_does_not_pass_on_the_password() -> None:
    """Another server to which the registry redirects does not get the password."""
    with server(200, "[]", {}) as (other, seen), server(302, "", {"Location": f"{other}/versions"}) as (url, first):
        assert RegistryClient(url, "app", "s3cret").versions("orders-value") == []

    assert ["Authorization" in headers for headers in (*first, *seen)] == [True, False]


def test_an_invalid_address_is_an_error_without_its_password() -> None:
    """The error about an address with a password in it does not contain the password."""
    with pytest.raises(RegistryError) as raised:
        RegistryClient("http://app:s3cret@localhost").versions("orders-value")

    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("entry", [{"id": 1, "version": 1, "schema": "{"}, {"id": "x", "version": 1, "schema": "{}"}])
def test_an_invalid_schema_is_an_error_of_the_registry(entry: dict[str, object]) -> None:
    """A version whose schema or id cannot be read is named."""
    with server(200, json.dumps(entry), {}) as (url, _), pytest.raises(RegistryError) as raised:
        RegistryClient(url)._version("orders-value", 3)

    assert "version 3 of orders-value" in str(raised.value)
