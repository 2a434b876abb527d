"""`make bench-ui`: measures the live page with 200 queries and 1,000,000 batches of history in Chromium.

Prints the first paint by the browser's own clock (median of five loads), what an update costs in scripts and layout,
and the size of the JavaScript heap before and after as many updates as an hour has seconds. In each update ten queries
have a new batch; in the last updates all of them. The updates are dispatched on the page's own event stream, faster
than they would arrive.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from benchmarks.make_history import History, LiveRun, make_history
from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.app.ui.serve import serving
from tests.support.browsing import CHROMIUM, FLAGS

ROOT = Path(__file__).resolve().parent.parent

QUERIES, BATCHES, DAYS, LOADS = 200, 1_000_000, 30, 5
UPDATES, CHANGED, FULL_UPDATES, WARM_UP = 3_600, 10, 50, 1_000
"""Updates of an hour, the queries that change in each, and updates in which all queries change."""

GOAL_PAINT_MS, GOAL_UPDATE_MS, GOAL_GROWTH = 1_000, 100, 0.1

DISPATCH = "given => bench.dispatch(given)"
SCRIPT = Path(__file__).with_suffix(".js")
"""Runs in the page before its own scripts, and defines `bench`."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serves the page of the generated project, with a run of this process."""
    history = History(QUERIES, BATCHES, DAYS, time.time())
    if not (folder / "logs" / "history.sqlite").exists():
        make_history(folder, history)
    run = LiveRun(folder, history)
    run.begin()
    with serving(listen(UiRequest(port=0)), ProjectRequest(folder)) as url:
        yield url
    run.end()


def paints(browser: Browser, url: str) -> list[dict[str, float]]:
    """Returns the times of the first paint and of the table with all queries, in ms since the navigation, per load."""
    found = []
    for _ in range(LOADS + 1):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(path=SCRIPT)
        page.goto(url, wait_until="commit")
        found.append(page.evaluate("bench.paint()"))
        page.close()
    return found[1:]  # the first load compiles the project


def heap(session: CDPSession) -> int:
    """Returns the bytes of the JavaScript heap after a garbage collection."""
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    return int(session.send("Runtime.getHeapUsage")["usedSize"])


def metrics(session: CDPSession) -> dict[str, float]:
    """Returns Chromium's counters: seconds of scripts, styles and layout, and numbers of nodes and listeners."""
    return {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}


def updates(page: Page) -> dict[str, Any]:
    """Dispatches an hour of updates, and returns what they cost, and the heap before and after."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")
    page.evaluate(DISPATCH, {"count": WARM_UP, "changed": CHANGED})  # scripts are compiled, small charts are full
    before, used = metrics(session), heap(session)
    took = page.evaluate(DISPATCH, {"count": UPDATES, "changed": CHANGED})
    after, left = metrics(session), heap(session)
    full = page.evaluate(DISPATCH, {"count": FULL_UPDATES, "changed": QUERIES})
    names = ("ScriptDuration", "LayoutDuration", "RecalcStyleDuration")
    spent = sum(after[name] - before[name] for name in names) * 1000 / UPDATES
    counts = {name: (before[name], after[name]) for name in ("Nodes", "JSEventListeners")}
    return {"took": sorted(took), "full": sorted(full), "spent": spent, "heap": (used, left), "counts": counts}


def main() -> None:
    """Measures and prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, help="keeps the generated history here, and uses it again")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON, too")
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="bench-ui-") as name,
        served(given.folder or Path(name)) as url,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS, "--enable-precise-memory-info"])
        loads = paints(browser, url)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.add_init_script(path=SCRIPT)
        page.goto(url)
        page.get_by_role("button", name="Show the graph").click()
        page.wait_for_function("document.querySelector('.graph .node')")
        found = updates(page)
        browser.close()
    report(loads, found)
    if given.json:
        print(json.dumps({"loads": loads, **{key: found[key] for key in ("spent", "heap", "counts")}}))


def report(loads: list[dict[str, float]], found: dict[str, Any]) -> None:
    """Prints the figures with their goals."""
    first, table = (statistics.median(load[key] for load in loads) for key in ("first", "table"))
    print(f"{QUERIES} queries, {BATCHES:,} batches")
    print(f"first paint {first:.0f} ms, all queries {table:.0f} ms: {verdict(table <= GOAL_PAINT_MS)}")
    for count, times in ((CHANGED, found["took"]), (QUERIES, found["full"])):
        median, high = statistics.median(times), times[int(len(times) * 0.99) - 1]
        print(f"update of {count} queries: {median:.1f} ms, 99 % {high:.1f} ms: {verdict(high <= GOAL_UPDATE_MS)}")
    print(f"scripts, styles and layout by Chromium's counters: {found['spent']:.1f} ms per update")
    used, left = (size / 1e6 for size in found["heap"])
    print(f"heap {used:.1f} MB, after {UPDATES:,} updates {left:.1f} MB: {verdict(left <= used * (1 + GOAL_GROWTH))}")
    for name, (start, end) in found["counts"].items():
        print(f"{name}: {start:.0f} before, {end:.0f} after")


def verdict(is_reached: bool) -> str:
    """Returns the word for a goal."""
    return "reached" if is_reached else "MISSED"


if __name__ == "__main__":
    main()
