"""The page as an application of Starlette: its addresses, its data, the documentation site, and the live updates of its
browsers.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import html
import logging
import math
import mimetypes
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.staticfiles import NotModifiedResponse

from sqlstream.times import utc_now
from sqlstream.web.server.access import Access, AccessControl
from sqlstream.web.server.protocol import Follower, Span, UiData, UnknownQueryError
from sqlstream.web.site.page import site_assets

ASSETS = Path(__file__).parent.parent / "assets"

HOUR_MS = 3_600_000
"""The range of a series without `from`."""

MAX_MS = 1 << 53

Read = Callable[[Request], Any]

EVENT_STREAM = "text/event-stream"

UPDATE_SECONDS = 1.0
"""How often browsers get updates."""

ALIVE_SECONDS = 15.0
"""How often a browser gets at least a message, so that proxies keep the connection, and it notices its loss."""

MAX_WAITING = 30
"""The most updates that wait for a slow browser. Then it gets a request to reload."""

logger = logging.getLogger("sqlstream.ui")


def make_app(data: UiData, access: Access) -> Starlette:
    """Returns the application for `data`."""
    live = LiveUpdates(data)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        app.state.live = live
        yield
        live.close()

    async def stream(request: Request) -> Response:
        browser = await run_in_threadpool(_browser, data, request.query_params)
        return StreamingResponse(live.stream(browser), media_type=EVENT_STREAM)

    return Starlette(
        routes=[
            Route("/", _page),
            Route("/api/live", stream),
            *_api_routes(data),
            Route("/assets/{path:path}", _asset),
            *_docs_routes(data),
        ],
        # live updates are not compressed: GZipMiddleware leaves event streams out
        middleware=[Middleware(AccessControl, access=access), Middleware(GZipMiddleware)],
        exception_handlers={HTTPException: _http_error, UnknownQueryError: _unknown},
        lifespan=lifespan,
    )


def _asset(request: Request) -> Response:
    """Returns a script, a style or an image. A page loads dozens of them, so they are compressed only once."""
    try:
        path = (ASSETS / request.path_params["path"]).resolve()
        is_asset = path.is_relative_to(ASSETS.resolve()) and path.is_file()
    except (OSError, ValueError):  # no name of a file
        is_asset = False
    if not is_asset:
        raise HTTPException(404)
    return _kept_file(str(path), path.stat().st_mtime_ns).answer(request)


@dataclass(frozen=True)
class _Kept:
    """Content that a browser keeps, and asks by its digest whether it has changed."""

    body: bytes
    media_type: str

    @cached_property
    def tag(self) -> str:
        """The digest of the content."""
        return f'"{hashlib.sha256(self.body).hexdigest()[:32]}"'

    @cached_property
    def compressed(self) -> bytes:
        """The content for browsers that accept gzip."""
        return gzip.compress(self.body, 6)

    def answer(self, request: Request) -> Response:
        """Returns the content, or that the browser has it."""
        headers = {"etag": self.tag, "cache-control": "private, no-cache", "vary": "Accept-Encoding"}
        if self.tag in _known_tags(request):
            return NotModifiedResponse(Headers(headers))
        is_compressed = "gzip" in request.headers.get("accept-encoding", "")
        headers |= {"content-encoding": "gzip"} if is_compressed else {}
        return Response(self.compressed if is_compressed else self.body, media_type=self.media_type, headers=headers)


@cache
def _kept_file(path: str, _modified: int) -> _Kept:
    return _Kept(Path(path).read_bytes(), mimetypes.guess_type(path)[0] or "application/octet-stream")


def _docs_routes(data: UiData) -> list[Route]:
    """Returns the routes of the documentation site, which is made from the project in memory."""

    def to_site(request: Request) -> Response:
        query = request.url.query
        return RedirectResponse(f"/docs/?{query}" if query else "/docs/", 307)

    def page(request: Request) -> Response:
        try:
            text = data.docs(request.query_params.get("target"))
        except UnknownQueryError as error:
            return HTMLResponse(_NO_DOCS.format(html.escape(str(error))), 404)
        return _Kept(text.encode(), "text/html").answer(request)

    def asset(request: Request) -> Response:
        name = f"assets/{request.path_params['name']}"
        if name not in site_assets():
            raise HTTPException(404)
        media_type = "text/css" if name.endswith(".css") else "text/javascript"
        return _Kept(site_assets()[name].encode(), media_type).answer(request)

    return [Route("/docs", to_site), Route("/docs/", page), Route("/docs/assets/{name}", asset)]


_NO_DOCS = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>sqlstream docs</title>
<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="/assets/theme.css"></head>
<body><main class="page"><h1>This documentation cannot be shown</h1>
<p>{}</p><p><a href="/">Go to the live page, which shows the errors of the project</a></p></main></body></html>
"""


def _known_tags(request: Request) -> list[str]:
    return [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]


def _browser(data: UiData, query: QueryParams) -> Browser:
    """Returns the page that opens a stream. Without `after`, it gets the batches after the newest one: a batch that
    ends later may have begun earlier. Raises: UnknownQueryError, so that nobody waits for nothing.
    """
    target, model, after = query.get("target"), query.get("model"), _number(query, "after", 0, MAX_MS)
    data.project(target)
    if model is not None and not after:
        newest = data.batches(target, model, Span(0, MAX_MS, limit=1))["batches"]
        after = newest[0]["at_ms"] if newest else 0
    return Browser(target, model, after)


def _api_routes(data: UiData) -> list[Route]:
    def target(request: Request) -> str | None:
        return request.query_params.get("target")

    def model(request: Request) -> str:
        return str(request.path_params["model"])

    def limit(request: Request, default: int) -> int:
        return _number(request.query_params, "limit", default, 1_000)

    reads: dict[str, Read] = {
        "/api/project": lambda request: data.project(target(request)),
        "/api/overview": lambda request: data.overview(target(request)),
        "/api/node/{node}": lambda request: data.node(target(request), str(request.path_params["node"])),
        "/api/query/{model}": lambda request: data.query(target(request), model(request)),
        "/api/query/{model}/series": lambda request: data.series(target(request), model(request), _span(request, 800)),
        "/api/query/{model}/batches": lambda request: data.batches(target(request), model(request), _span(request)),
        "/api/query/{model}/events": lambda request: data.events(target(request), model(request), _span(request)),
        "/api/query/{model}/sample": lambda request: data.sample(target(request), model(request), limit(request, 20)),
        "/api/search": lambda request: data.search(target(request)),
        "/api/lineage": lambda request: data.lineage(target(request), request.query_params.get("column", "")),
    }
    return [Route(path, _answer(read)) for path, read in reads.items()]


def _answer(read: Read) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:  # not async: Starlette calls it in a thread
        return Response(to_json(read(request), fallback=str, inf_nan_mode="null"), media_type="application/json")

    return answer


def _page(request: Request) -> Response:
    page = ASSETS / "index.html"
    return _kept_file(str(page), page.stat().st_mtime_ns).answer(request)


def _span(request: Request, points: int = 0) -> Span:
    """Returns the part of the history that a request asks for: without `from`, the last hour of a series, and
    everything of a list.
    """
    query = request.query_params
    now = int(time.time() * 1000)
    to_ms = _number(query, "to", now, MAX_MS)
    order = query.get("order", "newest")
    if order not in ("newest", "slowest"):
        raise HTTPException(400, "`order` is `newest` or `slowest`")
    return Span(
        _number(query, "from", to_ms - HOUR_MS if points else 0, MAX_MS),
        to_ms,
        _number(query, "points", points, 5_000),
        tuple(filter(None, query.get("names", "").split(","))),
        order,
        _number(query, "limit", 100, 1_000),
        _number(query, "before", 0, MAX_MS) or None,
    )


def _number(query: QueryParams, name: str, default: int, highest: int) -> int:
    """Returns a whole number from 0 to `highest`. Raises: HTTPException for anything else that is no number."""
    text = query.get(name)
    if not text:
        return default
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise HTTPException(400, f"`{name}` is not a number")
    return int(min(max(found, 0), highest))


async def _http_error(request: Request, error: Exception) -> Response:
    del request
    status = error.status_code if isinstance(error, HTTPException) else 500
    detail = error.detail if isinstance(error, HTTPException) else "error"
    return Response(to_json({"error": detail}), status, media_type="application/json")


async def _unknown(request: Request, error: Exception) -> Response:
    del request
    return Response(to_json({"error": str(error), **vars(error)}), 404, media_type="application/json")


@dataclass(eq=False)  # a set holds each browser, also two with the same query
class Browser:
    """One open page. `model` is the query whose batches it also gets, from `after_ms` on (ms since 1970)."""

    target: str | None
    model: str | None = None
    after_ms: int = 0
    waiting: asyncio.Queue[bytes] = field(default_factory=lambda: asyncio.Queue(MAX_WAITING))

    def put(self, message: bytes) -> None:
        """Adds a message. A browser that is too slow loses all waiting ones, and must reload the overview."""
        if self.waiting.full():
            while not self.waiting.empty():
                self.waiting.get_nowait()
            message = sent("overview", {"reload": True})
        self.waiting.put_nowait(message)


@dataclass
class Followed:
    """A follower, whose next call reports what changes after the time `since`."""

    follower: Follower
    since: str


class LiveUpdates:
    """Sends what has changed to all open pages, about once a second. Does nothing while no page is open."""

    def __init__(self, data: UiData) -> None:
        self._data = data
        self._browsers: set[Browser] = set()
        self._followed: dict[str | None, Followed] = {}
        self._following = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Ends all streams."""
        self._closing.set()
        if self._task is not None:
            self._task.cancel()

    async def stream(self, browser: Browser) -> AsyncIterator[bytes]:
        """Yields the messages for one page until it is closed: `hello` with a time, and everything that changes after
        this time.
        """
        self._browsers.add(browser)
        try:
            since = await self._follow(browser.target)
            if self._task is None or self._task.done():
                self._task = asyncio.create_task(self._work())
            yield sent("hello", {"time": since})
            while not self._closing.is_set():
                try:
                    yield await asyncio.wait_for(browser.waiting.get(), ALIVE_SECONDS)
                except TimeoutError:
                    yield sent("alive", {})
        finally:
            self._browsers.discard(browser)

    async def _follow(self, target: str | None) -> str:
        """Begins to follow a target, unless another page does; returns the time since which changes are reported."""
        async with self._following:
            if target not in self._followed:
                follower = await run_in_threadpool(self._data.follow, target)
                await run_in_threadpool(follower.changes)  # the first call has none
                self._followed[target] = Followed(follower, utc_now())
            return self._followed[target].since

    async def _work(self) -> None:
        while self._browsers:
            for target, followed in list(self._followed.items()):
                try:
                    await self._update(target, followed)
                except Exception:  # the next second may be better
                    logger.exception("a live update failed")
            self._followed = {
                target: followed
                for target, followed in self._followed.items()
                if any(browser.target == target for browser in self._browsers)
            }
            await asyncio.sleep(UPDATE_SECONDS)

    async def _update(self, target: str | None, followed: Followed) -> None:
        changes = await run_in_threadpool(followed.follower.changes)
        followed.since = utc_now()
        if changes is not None:
            message = sent("overview", changes)
            for browser in list(self._browsers):
                if browser.target == target:
                    browser.put(message)
        for browser in [each for each in self._browsers if each.target == target and each.model is not None]:
            await self._send_batches(browser, browser.model or "")

    async def _send_batches(self, browser: Browser, model: str) -> None:
        try:
            rows = await run_in_threadpool(self._data.new_batches, browser.target, model, browser.after_ms)
        except UnknownQueryError:
            return
        if rows:
            browser.after_ms = max(row["at_ms"] for row in rows)
            browser.put(sent("batches", {"model": model, "rows": rows}))


def sent(event: str, content: Any) -> bytes:
    """Returns a message of an event stream."""
    return b"event: " + event.encode() + b"\ndata: " + to_json(content) + b"\n\n"
