"""The addresses of the page and of its data."""

from __future__ import annotations

import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sqlstream.web.server.access import Access, AccessControl
from sqlstream.web.server.live import Browser, LiveUpdates
from sqlstream.web.server.protocol import Span, UiData, UnknownQueryError

ASSETS = Path(__file__).parent.parent / "assets"

HOUR_MS = 3_600_000
"""The range of a series without `from`."""

MAX_MS = 1 << 53

Read = Callable[[Request], Any]


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
            Mount("/assets", StaticFiles(directory=ASSETS)),
        ],
        middleware=[Middleware(AccessControl, access=access)],
        exception_handlers={HTTPException: _http_error, UnknownQueryError: _unknown},
        lifespan=lifespan,
    )


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


EVENT_STREAM = "text/event-stream"


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
        "/api/query/{model}": lambda request: data.query(target(request), model(request)),
        "/api/query/{model}/series": lambda request: data.series(target(request), model(request), _span(request, 800)),
        "/api/query/{model}/batches": lambda request: data.batches(target(request), model(request), _span(request)),
        "/api/query/{model}/events": lambda request: data.events(target(request), model(request), _span(request)),
        "/api/query/{model}/sample": lambda request: data.sample(target(request), model(request), limit(request, 20)),
        "/api/lineage": lambda request: data.lineage(target(request), request.query_params.get("column", "")),
    }
    return [Route(path, _answer(read)) for path, read in reads.items()]


def _answer(read: Read) -> Callable[[Request], Response]:
    def answer(request: Request) -> Response:  # not async: Starlette calls it in a thread
        return Response(to_json(read(request), fallback=str, inf_nan_mode="null"), media_type="application/json")

    return answer


def _page(request: Request) -> Response:
    del request
    return FileResponse(ASSETS / "index.html", media_type="text/html; charset=utf-8")


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
    return Response(to_json({"error": str(error)}), 404, media_type="application/json")
