"""Who may read the page: checks the Host and Origin of each request, and the token."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
"""The headers of each response. Scripts and styles come only from this server, and none is inline."""

_FORM_POLICY = SECURITY_HEADERS["content-security-policy"].replace("form-action 'none'", "form-action 'self'")

_FORM = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>sqlstream</title>
<meta name="viewport" content="width=device-width"></head>
<body><main><h1>This page needs its token</h1>
<p>It is the end of the URL that sqlstream has printed, after <code>token=</code>, or the value of its option
<code>--token</code>.</p>
<form method="get"><label>Token <input type="password" name="token" required autofocus></label>
<button>Open</button></form></main></body></html>
"""
"""A form without an action keeps the part of the address after `#`, and so the query that a link is about."""

LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Returns whether only this machine can connect to an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Access:
    """Who may read the page that listens at `host` and `port`: everyone who can connect, or who knows `token`."""

    host: str
    port: int
    token: str | None = None

    @property
    def cookie(self) -> str:
        """The name of the cookie. Cookies do not depend on the port, so the name does."""
        return f"sqlstream_{self.port}"

    @property
    def proof(self) -> str:
        """The value of the cookie, which does not reveal the token."""
        return hmac.new((self.token or "").encode(), b"sqlstream page", hashlib.sha256).hexdigest()

    def refusal(self, headers: Headers, query: str) -> Response | None:
        """Returns the answer to a request that is refused, or that exchanges the token for the cookie; None for an
        allowed one. `query` is the query part of its URL.
        """
        try:
            is_known = self._is_host(headers.get("host", ""))
            origin = headers.get("origin")
            is_other = origin is not None and urlsplit(origin).netloc != headers.get("host")
        except ValueError:
            return PlainTextResponse("the Host or the Origin of the request is not a host name\n", 400)
        if not is_known:
            return PlainTextResponse("unknown host: use the address that sqlstream has printed\n", 421)
        if is_other:
            return PlainTextResponse("requests from other sites are not allowed\n", 403)
        return None if self.token is None else self._token_refusal(self.token, headers, query)

    def _is_host(self, host: str) -> bool:
        """Returns whether a Host header names this server. On a loopback address, a name that an attacker made point
        there is refused. On other addresses the server does not know its names, and the token protects it.

        Raises: ValueError if it is not a host name.
        """
        if self.token is not None and not is_loopback(self.host):
            return bool(host)
        name = urlsplit(f"//{host}").hostname
        return name in LOCAL_NAMES or name == self.host

    def _token_refusal(self, token: str, headers: Headers, query: str) -> Response | None:
        # programs send the header, browsers the cookie; only the first visit has the token in its URL
        if _same(headers.get("authorization", ""), f"Bearer {token}") or _same(self._cookie_of(headers), self.proof):
            return None
        pairs = parse_qsl(query, keep_blank_values=True)
        if any(name == "token" and _same(value, token) for name, value in pairs):
            return None
        if "text/html" in headers.get("accept", ""):
            return HTMLResponse(_FORM, 401, {"content-security-policy": _FORM_POLICY})
        return PlainTextResponse("the token is missing or wrong: open the URL that sqlstream has printed\n", 401)

    def _cookie_of(self, headers: Headers) -> str:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(self.cookie)
        except CookieError:
            return ""
        return found.value if found is not None else ""

    def entry(self, path: str, query: str) -> Response | None:
        """Returns the redirect of a request with the token in its URL, which sets the cookie and hides the token; None
        for a request without a token. The request must be allowed.
        """
        pairs = parse_qsl(query, keep_blank_values=True)
        others = [(name, value) for name, value in pairs if name != "token"]
        if self.token is None or len(others) == len(pairs):
            return None
        answer = RedirectResponse(f"{path}?{urlencode(others)}" if others else path, 303)
        # not `strict`: a link in a message of another site opens the page
        answer.set_cookie(self.cookie, self.proof, httponly=True, samesite="lax", path="/")
        return answer


def _same(given: str, expected: str) -> bool:
    return hmac.compare_digest(given.encode(), expected.encode())  # its duration tells nothing about the token


class AccessControl:
    """ASGI middleware that refuses requests, and adds `added` headers to all answers without them."""

    def __init__(self, app: ASGIApp, access: Access, added: Mapping[str, str] = SECURITY_HEADERS) -> None:
        self._app, self._access, self._added = app, access, added

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name for name, _ in message["headers"]}
                added = [(name.encode(), value.encode()) for name, value in self._added.items()]
                message["headers"] = [*message["headers"], *(pair for pair in added if pair[0] not in given)]
            await send(message)

        headers, query = Headers(scope=scope), scope["query_string"].decode("latin-1")
        answer = self._access.refusal(headers, query) or self._access.entry(_own_path(scope["path"]), query)
        await (self._app if answer is None else answer)(scope, receive, send_secured)


def _own_path(path: str) -> str:
    """Returns a path of this server: `//evil.example` would be another one."""
    return "/" + path.lstrip("/\\")
