"""Where the browser is, and what tests of pages share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
ROOT = Path(__file__).parents[2]
LONGEST_WAIT = 60_000
"""Milliseconds. A busy machine needs them; a condition that is met ends a wait at once."""

OpenPage = Callable[..., Page]
"""Opens an address with `width`, `height`, `theme` and other settings of Playwright's contexts, and returns the page."""

AXE = ROOT / "tests" / "browser" / "vendor" / "axe-core" / "axe.min.js"
