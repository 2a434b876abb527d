"""The live page on phones, on touch screens and zoomed to 200 %, in a real browser, with long names and many states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, CDPSession, Page, expect

from tests.support.browsing import OpenPage
from tests.support.graph_project import GraphProject, served_graph
from tests.support.ui_project import QUERIES, Served, free_port, page_of, served_project

NAME = "observed_events_of_all_customer_facing_platforms_in_production"
TABS = ("charts", "batches", "sql", "columns", "output", "checks", "history")
WIDTHS = (320, 390, 640, 1241, 1280, 1440, 1520)
"""Phones, a window of 1280 pixels at 200 %, and the widths around which the layout changes."""

PHONE: dict[str, Any] = {"has_touch": True, "is_mobile": True, "timezone_id": "America/New_York"}

MISTAKES = """() => {
  const found = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
  const name = element => `${element.tagName}.${element.getAttribute('class')} "${element.textContent.slice(0, 30)}"`;
  const style = element => getComputedStyle(element);
  const scrolls = element => element && element !== document.body && (/auto|scroll|hidden|clip/.test(style(element).overflowX) || scrolls(element.parentElement));
  for (const element of document.querySelectorAll('body *')) {
    if (!element.checkVisibility() || element.ownerSVGElement || element.closest('.visually-hidden')) continue;
    const box = element.getBoundingClientRect();
    if (box.width < 2) continue;
    if ((box.right > width + 1 || box.left < -1) && !scrolls(element.parentElement)) found.push(`outside: ${name(element)}`);
    if (width > 860) continue;
    const isCut = /hidden|clip/.test(style(element).overflowX) && element.scrollWidth > element.clientWidth + 1 && element.textContent.trim();
    if (isCut && !element.closest('.brand, .graph, .plot, .offsets')) found.push(`cut: ${name(element)}`);
    const isTarget = element.matches('a, button, select, input:not([type=hidden]), summary, [role=button]') && !element.closest('.skip, p, td');
    const target = (element.closest('.row') || element).getBoundingClientRect();
    if (isTarget && (target.height < 39.5 || target.width < 39.5)) found.push(`small: ${name(element)} ${target.width}x${target.height}`);
  }
  return [...new Set(found)];
}"""
"""Returns what is too wide, outside of the window, cut, or too small for a finger."""

CORNER = "() => { const { a, e, f } = document.querySelector('.graph .edge').getScreenCTM(); const box = document.querySelector('.graph').getBoundingClientRect(); return [a, e - box.left, f - box.top].map(Math.round); }"
"""Returns the zoom of the graph, and where it is in its box."""


SETTLED = """() => new Promise(done => {
  let [last, same] = [scrollY, 0];
  const look = () => {
    same = scrollY === last ? same + 1 : 0;
    last = scrollY;
    if (same > 10) done(); else requestAnimationFrame(look);
  };
  look();
})"""
"""Waits until the page does not scroll."""


@dataclass(frozen=True)
class Long:
    """A page of a project with long names; `query` has the longest."""

    url: str
    query: str


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Long]:
    """A project with long names and queries in all states."""
    query = max(GraphProject(60, NAME).queries, key=len)
    with served_graph(tmp_path_factory.mktemp("long"), 60, NAME) as url:
        yield Long(url, query)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A project with a history, a killed run, and a refused one."""
    with served_project(tmp_path_factory.mktemp("phone")) as found:
        found.run.kill("12345678-killed", (0, 1, 2, 4))
        yield found


def mistakes(page: Page) -> dict[int, list[str]]:
    """Returns the mistakes of the view that is shown, by the widths of the window that have any."""
    found = {}
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => document.documentElement.clientWidth === width", arg=width)
        found[width] = page.evaluate(MISTAKES)
    return {width: texts for width, texts in found.items() if texts}


def open_graph(page: Page) -> None:
    """Opens the graph and scrolls to it."""
    page.get_by_role("button", name="Show the graph").click()
    expect(page.locator(".graph .node").first).to_be_visible()
    page.locator(".flow-graph").evaluate("box => scrollTo(0, scrollY + box.getBoundingClientRect().top - 200)")


def swipe(cdp: CDPSession, x: float, y: float, dx: float, dy: float, fingers: int = 1) -> None:
    """Moves fingers that are 40 pixels apart over the screen."""
    steps = 8
    for step in range(steps + 1):
        points = [
            {"x": x + dx * step / steps + 40 * finger, "y": y + dy * step / steps, "id": finger}
            for finger in range(fingers)
        ]
        cdp.send("Input.dispatchTouchEvent", {"type": "touchMove" if step else "touchStart", "touchPoints": points})
    cdp.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def test_the_overview_fits(long: Long, served: Served, open_page: OpenPage) -> None:
    """At every width, nothing of the overview is outside, cut, or too small for a finger, also with open groups."""
    page = open_page(long.url, timezone_id="America/New_York")
    expect(page.locator(".rows .row").first).to_be_visible()
    assert mistakes(page) == {}
    open_graph(page)
    page.locator(".graph .node[data-id^='query:']").first.press("Enter")
    expect(page.locator(".graph .frame-title")).to_have_count(1)
    assert mistakes(page) == {}
    page.locator(".graph .frame-title").press("f")
    expect(page.get_by_role("group", name="What the graph shows")).to_be_visible()
    assert mistakes(page) == {}
    page.goto(served.url)
    expect(page.locator(".problems li.killed")).to_have_count(1)
    assert mistakes(page) == {}


@pytest.mark.parametrize("tab", TABS)
def test_the_tabs_of_a_query_fit(long: Long, served: Served, open_page: OpenPage, tab: str) -> None:
    """At every width, nothing of a query's page is outside, cut, or too small for a finger."""
    page = open_page(f"{long.url}#/query/{long.query}/{tab}")
    expect(page.locator(".tab-body .card").first).to_be_visible()
    assert mistakes(page) == {}
    page.goto(f"{served.url}#/query/clicks_003/{tab}")
    expect(page.locator(".tab-body .card").first).to_be_visible()
    assert mistakes(page) == {}


def test_the_active_tab_is_visible(long: Long, open_page: OpenPage) -> None:
    """The tabs scroll sideways, and the active one is in the window, also after a change."""
    page = open_page(f"{long.url}#/query/{long.query}/history", width=320, height=700, **PHONE)
    active = page.locator(".tabs [aria-current]")
    for label in ("History", "Charts", "Plan and tests"):
        page.locator(".tabs a", has_text=label).click()
        expect(active).to_have_text(label)
        box = active.bounding_box()
        assert box
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= 320
    assert page.evaluate("scrollX") == 0


def test_a_swipe_over_the_graph_scrolls_the_page(long: Long, open_page: OpenPage) -> None:
    """One finger scrolls the page until the graph is tapped; then it moves the graph, until a tap elsewhere."""
    page = open_page(long.url, width=390, height=700, **PHONE)
    open_graph(page)
    cdp = page.context.new_cdp_session(page)
    corner, top = page.evaluate(CORNER), page.evaluate("scrollY")
    box = page.locator(".flow-graph").bounding_box()
    assert box
    x, y = box["x"] + 60, box["y"] + 20

    swipe(cdp, x, y, 0, 120)
    page.wait_for_function("top => scrollY < top - 50", arg=top)
    page.evaluate(SETTLED)  # a tap would only stop the scrolling
    assert page.evaluate(CORNER) == corner

    box = page.locator(".flow-graph").bounding_box()
    assert box
    x, y = box["x"] + 60, box["y"] + 12
    page.touchscreen.tap(x, y)
    expect(page.locator(".flow-graph")).to_have_class(re.compile("active"))
    top = page.evaluate("scrollY")
    corner = page.evaluate(CORNER)
    swipe(cdp, x, y, 80, 30)
    page.wait_for_function(f"before => ({CORNER})()[1] > before + 40", arg=corner[1])
    assert page.evaluate("scrollY") == top

    page.locator(".flow h2").tap()  # nothing happens there, wherever the page is scrolled
    expect(page.locator(".flow-graph")).not_to_have_class(re.compile("active"))


def test_two_fingers_move_the_graph(long: Long, open_page: OpenPage) -> None:
    """Two fingers move the graph without a tap, and the page stays."""
    page = open_page(long.url, width=390, height=700, **PHONE)
    open_graph(page)
    corner, top = page.evaluate(CORNER), page.evaluate("scrollY")
    box = page.locator(".flow-graph").bounding_box()
    assert box
    swipe(page.context.new_cdp_session(page), box["x"] + 60, box["y"] + 40, 70, 20, fingers=2)
    page.wait_for_function(f"before => ({CORNER})()[1] > before + 40", arg=corner[1])
    assert page.evaluate("scrollY") == top


def test_a_tap_on_a_node_shows_its_full_name(long: Long, open_page: OpenPage) -> None:
    """A tap on a group opens it where it is; a tap on a query shows its full name with a link to its page."""
    page = open_page(long.url, width=390, height=800, **PHONE)
    open_graph(page)
    group = page.locator(".graph .node[data-id='query:payments']")
    group.press("Enter")
    for state in ("false", "true"):
        group.tap()
        expect(group).to_have_attribute("aria-expanded", state)
    found = page.locator(".graph .node.kind-query[role=link]").first
    name = (found.get_attribute("data-id") or "").rsplit(".", 1)[-1]
    found.tap()
    bar = page.get_by_role("group", name="Chosen node")
    bar.get_by_role("link", name=name).tap()
    expect(page.locator("h1")).to_have_text(name)


def test_the_table_is_before_the_graph(long: Long, open_page: OpenPage) -> None:
    """On a phone the table comes first, and the graph is at most 60 % of the window high."""
    page = open_page(long.url, width=390, height=700, **PHONE)
    open_graph(page)
    tops = [
        page.locator(part).evaluate("each => each.getBoundingClientRect().top") for part in (".queries-card", ".flow")
    ]
    assert tops[0] < tops[1]
    box = page.locator(".flow-graph").bounding_box()
    assert box
    assert box["height"] <= 420


@pytest.mark.parametrize("width", [320, 390, 640])
def test_a_lost_connection_fits(tmp_path: Path, browser: Browser, width: int) -> None:
    """Without the server, a line below the bar says since when; it covers nothing of the page."""
    project = GraphProject(20, NAME)
    project.write(tmp_path)
    project.run(tmp_path)
    with page_of(tmp_path, free_port()) as url:
        context = browser.new_context(viewport={"width": width, "height": 700}, has_touch=True, is_mobile=True)
        page = context.new_page()
        page.goto(url)
        expect(page.locator(".connection")).to_have_text("Live")
    expect(page.locator(".connection")).to_contain_text("reconnecting…")
    lost = page.locator(".connection").bounding_box()
    figures = page.locator(".figures").bounding_box()
    assert lost
    assert figures
    assert lost["width"] == width
    assert lost["y"] + lost["height"] <= figures["y"]
    assert page.evaluate(MISTAKES) == []
    context.close()


@pytest.mark.parametrize("width", [320, 640])
def test_dialogs_fit(served: Served, open_page: OpenPage, width: int) -> None:
    """The runs and the keys are within a small window, and they can be closed after scrolling."""
    page = open_page(served.url, width=width, height=450)
    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)
    for name in ("Runs", "Keys"):
        if name == "Runs":
            page.get_by_role("button", name="Runs:").click()
        else:
            page.keyboard.press("?")
        dialog = page.get_by_role("dialog", name=name)
        box = dialog.bounding_box()
        assert box
        assert min(box["x"], box["y"]) >= 0
        assert box["x"] + box["width"] <= width
        assert box["y"] + box["height"] <= 450
        assert page.evaluate(MISTAKES) == []
        dialog.evaluate("each => each.scrollTo(0, 10000)")
        dialog.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)


def test_wide_tables_scroll_in_their_regions(served: Served, open_page: OpenPage) -> None:
    """The list of batches is wider than a phone and scrolls within its region, also with the keyboard."""
    page = open_page(f"{served.url}#/query/clicks_008/batches", width=390, height=800, **PHONE)
    region = page.get_by_role("region", name="Table of batches")
    expect(region.locator("tbody tr").first).to_be_visible()
    assert region.evaluate("each => each.scrollWidth > each.clientWidth + 100")
    region.evaluate("each => each.scrollTo(300, 0)")
    assert region.evaluate("each => each.scrollLeft") == 300
    assert page.evaluate("[scrollX, document.documentElement.scrollWidth]") == [0, 390]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_is_accessible(
    long: Long, open_page: OpenPage, violations: Callable[[Page], list[str]], theme: str
) -> None:
    """The overview with its graph and the page of a query violate no rule of WCAG A and AA on a phone."""
    page = open_page(long.url, width=390, height=800, theme=theme, **PHONE)
    open_graph(page)
    assert violations(page) == []
    page.goto(f"{long.url}#/query/{long.query}/output")
    expect(page.locator(".tab-body .card").first).to_be_visible()
    assert violations(page) == []
