"""Live updates: one follower per target, whose changes go to all browsers that look at the target."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from pydantic_core import to_json
from starlette.concurrency import run_in_threadpool

from sqlstream.times import utc_now
from sqlstream.web.server.protocol import Follower, UiData, UnknownQueryError

UPDATE_SECONDS = 1.0
"""How often browsers get updates."""

COMMENT_SECONDS = 15.0
"""How often a browser gets at least a comment, so that proxies keep the connection."""

MAX_WAITING = 30
"""The most updates that wait for a slow browser. Then it gets a request to reload."""

logger = logging.getLogger("sqlstream.ui")


@dataclass(eq=False)
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


class LiveUpdates:
    """Sends what has changed to all open pages, about once a second. Does nothing while no page is open."""

    def __init__(self, data: UiData) -> None:
        self._data = data
        self._browsers: set[Browser] = set()
        self._followers: dict[str | None, Follower] = {}
        self._task: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def close(self) -> None:
        """Ends all streams."""
        self._closing.set()
        if self._task is not None:
            self._task.cancel()

    async def stream(self, browser: Browser) -> AsyncIterator[bytes]:
        """Yields the messages for one page until it is closed."""
        self._browsers.add(browser)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._work())
        try:
            yield sent("hello", {"time": utc_now()})
            while not self._closing.is_set():
                try:
                    yield await asyncio.wait_for(browser.waiting.get(), COMMENT_SECONDS)
                except TimeoutError:
                    yield b": still here\n\n"
        finally:
            self._browsers.discard(browser)

    async def _work(self) -> None:
        while self._browsers:
            for target in {browser.target for browser in self._browsers}:
                try:
                    await self._update(target)
                except Exception:  # the next second may be better
                    logger.exception("a live update failed")
            self._followers = {
                target: follower
                for target, follower in self._followers.items()
                if any(browser.target == target for browser in self._browsers)
            }
            await asyncio.sleep(UPDATE_SECONDS)

    async def _update(self, target: str | None) -> None:
        if target not in self._followers:
            self._followers[target] = await run_in_threadpool(self._data.follow, target)
        changes = await run_in_threadpool(self._followers[target].changes)
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
