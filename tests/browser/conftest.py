"""A real browser for tests of pages: Debian's Chromium, through Playwright. Without it, the tests are skipped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect, sync_playwright

from sqlstream.app.docs.generate import generate_docs
from sqlstream.app.request import ProjectRequest
from tests.support.browsing import AXE, CHROMIUM, FLAGS, LONGEST_WAIT, ROOT, OpenPage

EVERYDAY_LOOKS = {(1280, "light"), (390, "dark")}
"""The widths and themes that `make test` tries; `make test-all` tries all."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks tests in other widths and themes as slow."""
    for item in items:
        given = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        look = given.get("width"), given.get("theme")
        if None not in look and look not in EVERYDAY_LOOKS:
            item.add_marker("slow")


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """The browser, one for all tests."""
    if not CHROMIUM.exists():
        if os.environ.get("SQLSTREAM_TEST_SERVERS") == "required":
            pytest.fail(f"there is no {CHROMIUM}")
        pytest.skip(f"there is no {CHROMIUM}")
    expect.set_options(timeout=LONGEST_WAIT)
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens pages, each in a new context. A test fails if a page logs an error, raises one, or loads from a network."""
    problems: list[str] = []
    contexts = []

    def open_(url: str, *, width: int = 1280, height: int = 900, theme: str = "light", **settings: Any) -> Page:
        viewport: ViewportSize = {"width": width, "height": height}
        context = browser.new_context(viewport=viewport, color_scheme=theme, **settings)  # type: ignore[arg-type]
        contexts.append(context)
        context.set_default_timeout(LONGEST_WAIT)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda message: problems.append(message.text) if message.type == "error" else None)
        page.on("request", lambda request: problems.append(request.url) if _is_remote(request.url) else None)
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert problems == []


def _is_remote(url: str) -> bool:
    return not url.startswith(("file:", "data:", "blob:", "about:", "http://127.0.0.1:"))


@pytest.fixture(scope="session")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the worked examples, without their data."""
    folder = tmp_path_factory.mktemp("examples")
    for name in ("models", "macros", "seeds", "tests/models", "tests/fixtures", "python"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
    for file in ROOT.glob("*.yml"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture(scope="session")
def static_site(examples: Path) -> str:
    """The address of the examples' documentation as one file."""
    return generate_docs(ProjectRequest(examples), static=True).page.as_uri()


@pytest.fixture(scope="session")
def violations() -> Callable[[Page], list[str]]:
    """Returns the violations of WCAG 2.2 A and AA on a page, by axe."""
    script = AXE.read_text(encoding="utf-8")

    def find(page: Page) -> list[str]:
        page.evaluate(script)
        found = page.evaluate(
            "() => axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa']})"
        )
        return [f"{each['id']}: {node['html']}" for each in found["violations"] for node in each["nodes"]]

    return find
