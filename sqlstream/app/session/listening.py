"""Ports on which the page and the documentation site listen."""

from __future__ import annotations

import secrets
import socket
from dataclasses import dataclass, field

from sqlstream.app.request import UI_PORT, UiRequest
from sqlstream.errors import UsageError

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
