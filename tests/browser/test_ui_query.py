"""The page of a query in a real browser, on generated runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from itertools import combinations

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.make_history import RUN_SECONDS
from sqlstream.report.run_json import event_fields, event_name
from sqlstream.state.runs.events import AlertChanged
from tests.support.browsing import OpenPage
from tests.support.color_vision import VISIONS, difference, read_color
from tests.support.ui_project import Served, served_project

CLEAR = 15.0
"""The least distance of two colors in CIELAB."""

TABS = ("charts", "batches", "sql", "columns", "output", "checks", "history")
SETTLED = "() => !document.querySelector('.loading, [aria-busy=true]') && document.querySelector('.tab-body').childElementCount > 0"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path_factory.mktemp("query")) as found:
        yield found


def opened(served: Served, open_page: OpenPage, address: str, **options: object) -> Page:
    """Returns the page at an address of a query, with everything loaded."""
    page = open_page(f"{served.url}#/query/{address}", **options)
    page.wait_for_function(SETTLED)
    return page


def test_charts_show_the_history(served: Served, open_page: OpenPage) -> None:
    """The charts show the range of the address; other ranges change the address, and back goes back."""
    page = opened(served, open_page, "orders_000/charts?range=24h")

    expect(page.get_by_role("button", name="24 h")).to_have_attribute("aria-pressed", "true")
    for title in ("Rates", "Rows", "Batch duration", "State"):
        expect(page.get_by_role("region", name=title, exact=True).locator("canvas")).to_be_visible()
    expect(page.get_by_role("region", name="Lag")).to_contain_text("The lag is not known")
    expect(page.get_by_role("img", name="Rates.")).to_have_attribute("aria-label", re.compile("Input: last"))
    expect(page.locator(".markers")).to_contain_text("started")
    page.get_by_role("button", name="7 d").click()
    expect(page.locator(".shown")).to_contain_text("each point is")
    assert "range=7d" in page.url
    page.go_back()
    expect(page.get_by_role("button", name="24 h")).to_have_attribute("aria-pressed", "true")


def test_a_run_that_has_ended_is_shown_as_a_whole(served: Served, open_page: OpenPage) -> None:
    """Without a range in the address, the charts show the last run of a query that no longer runs, from its start to
    its end, and the last hour of one that runs.
    """
    failed = opened(served, open_page, "clicks_003/charts")
    expect(failed.get_by_role("button", name="Last run")).to_have_attribute("aria-pressed", "true")
    expect(failed.get_by_role("region", name="Rates", exact=True).locator("canvas")).to_be_visible()
    expect(failed.locator(".markers")).to_contain_text("failed")
    assert RUN_SECONDS * 1.02 < shown_seconds(failed) < RUN_SECONDS * 1.1

    running = opened(served, open_page, "orders_000/charts")
    expect(running.get_by_role("button", name="1 h", exact=True)).to_have_attribute("aria-pressed", "true")
    assert shown_seconds(running) == RUN_SECONDS
    running.get_by_role("button", name="Last run").click()
    expect(running.get_by_role("button", name="Last run")).to_have_attribute("aria-pressed", "true")
    running.wait_for_function(SETTLED)
    assert RUN_SECONDS * 1.02 < shown_seconds(running) < RUN_SECONDS * 1.1


def shown_seconds(page: Page) -> float:
    """Returns the length of the range that the charts show, which is one hour without `Last run`."""
    times = (page.locator(".shown").get_attribute("title") or "").replace(" UTC", "+00:00").split(" – ")
    start, end = map(datetime.fromisoformat, times)
    return (end - start).total_seconds()


def test_dragging_zooms_all_charts(served: Served, open_page: OpenPage) -> None:
    """A drag in one chart is a new range for all of them, which the button ends; the cursor is in all charts."""
    page = opened(served, open_page, "orders_000/charts?range=24h")
    over = page.get_by_role("region", name="Rates", exact=True).locator(".u-over")
    box = over.bounding_box()
    assert box is not None

    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + 40)
    first = page.locator(".chart .key b").first.inner_text()
    page.mouse.move(box["x"] + box["width"] * 0.75, box["y"] + 40)
    expect(page.locator(".chart .key b").first).not_to_have_text(first)
    assert page.locator(".u-cursor-x:not(.u-off)").count() >= 4
    entries = page.evaluate("history.length")
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 50, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="End the zoom")).to_be_visible()
    assert page.evaluate("history.length") == entries + 1
    address = page.evaluate("Object.fromEntries(new URLSearchParams(location.hash.split('?')[1]))")
    assert 3 <= (int(address["to"]) - int(address["from"])) / 3_600_000 <= 4.2
    page.get_by_role("button", name="End the zoom").click()
    expect(page.get_by_role("button", name="1 h", exact=True)).to_have_attribute("aria-pressed", "true")


def test_the_figures_and_batches_follow_the_run(served: Served, open_page: OpenPage) -> None:
    """A new batch changes the figures, and is the first of the newest batches."""
    page = opened(served, open_page, "payments_001/batches")
    expect(page.locator(".connection")).to_have_text("Live")
    before = page.locator(".batches tbody tr").first.locator("td").first.inner_text()

    served.run.changed_batch(1, {"rows_in": 98_765, "input_rows_per_second": 3_292.0})

    expect(page.locator(".tile-input")).to_contain_text("3.29k")
    newest = page.locator(".batches tbody tr").first
    expect(newest).to_contain_text("98,765")
    expect(newest).to_contain_text("payments.events")
    assert newest.locator("td").first.inner_text() != before
    page.get_by_role("button", name="Slowest").click()
    expect(page.locator(".batches tbody tr")).to_have_count(50)


def test_a_failed_query_says_why(served: Served, open_page: OpenPage) -> None:
    """The error of a failed query has its code, place, reason and fix."""
    page = opened(served, open_page, "clicks_003")

    box = page.get_by_role("region", name="Why it failed")
    for text in (
        "query-failed",
        "NumberFormatException",
        "models/orders/query_003.sql:4:5",
        "is not a number",
        "try_cast",
    ):
        expect(box).to_contain_text(text)
    expect(page.locator(".query-title")).to_contain_text("Failed")


def test_a_query_without_output_says_why(served: Served, open_page: OpenPage) -> None:
    """A silent query says why it emits nothing, and when it emits rows."""
    page = opened(served, open_page, "shipping_007/output")

    expect(page.get_by_role("region", name="Why there is no output")).to_contain_text("the watermark has not reached")
    expect(page.get_by_role("region", name="When it emits rows", exact=True)).to_contain_text("append mode")
    expect(page.get_by_role("region", name="Newest rows", exact=True)).to_contain_text("not written any files")


def test_an_alert_is_shown_until_it_is_resolved(served: Served, open_page: OpenPage) -> None:
    """An open alert is on the page of its query and of the project; its history, open or not, has both changes."""
    raised = AlertChanged(
        "payments_001",
        "lag_over",
        "raised",
        "payments_001 has a lag of 9 records",
        "id",
        "2026-01-02T03:04:05Z",
        9,
        5,
    )
    page = opened(served, open_page, "payments_001/history")
    expect(page.locator(".scroll-x[aria-label=Events]")).to_contain_text("started")
    served.run.event(event_name(raised), 1, event_fields(raised))
    alert = page.get_by_role("region", name="Alert")
    expect(alert).to_contain_text("Alert: lag_over")
    expect(alert).to_contain_text(raised.message)
    expect(page.locator(".scroll-x[aria-label=Events]")).to_contain_text(raised.message)
    page.goto(f"{served.url}#/")
    expect(page.locator(".problems")).to_contain_text(raised.message)

    served.run.event(
        "alert", 1, event_fields(replace(raised, state="resolved", message="payments_001 has 0 records left"))
    )
    expect(page.locator(".problems")).not_to_contain_text(raised.message)
    page = opened(served, open_page, "payments_001/history")
    expect(page.locator(".scroll-x[aria-label=Events]")).to_contain_text("alert resolved")
    expect(page.get_by_role("region", name="Alert")).to_have_count(0)


def test_the_code_of_a_query(served: Served, open_page: OpenPage) -> None:
    """SQL is side by side as written and compiled; columns have types, descriptions and the columns they come from."""
    page = opened(served, open_page, "orders_000/sql")

    expect(page.get_by_role("region", name="SQL as written", exact=True)).to_contain_text("{{ ref('orders_clean') }}")
    expect(page.get_by_role("region", name="SQL compiled", exact=True)).to_contain_text(
        "from orders_clean WATERMARK at"
    )
    expect(page.locator(".sql-keyword").first).to_be_visible()
    page.get_by_role("link", name="Columns").click()
    cells = page.get_by_role("region", name="Columns").locator("tr", has_text="minute")
    expect(cells).to_contain_text("timestamp")
    expect(cells).to_contain_text("orders.events.at")
    expect(page.locator("main")).to_contain_text("Number of orders")
    expect(page.locator(".query-head")).to_contain_text("Orders per minute and kind.")


def test_the_plan_tests_and_history_of_a_query(served: Served, open_page: OpenPage) -> None:
    """The plan, the last result of each unit test, and what happened are shown."""
    page = opened(served, open_page, "orders_000/checks")

    expect(page.get_by_role("region", name="What the next run does")).to_contain_text("it has no checkpoint yet")
    test = page.locator("tr", has_text="counts_events")
    expect(test).to_contain_text("failed")
    expect(test).to_contain_text("events is 2, expected 3")
    page.goto(f"{served.url}#/query/payments_011/history")
    expect(page.locator("h1")).to_have_text("payments_011")
    expect(page.locator(".scroll-x[aria-label=Events]").first).to_contain_text("started")


def test_an_unknown_query_and_page_say_so(served: Served, browser_page: Callable[[str], Page]) -> None:
    """An address of a query that does not exist leads back to the overview."""
    page = browser_page(f"{served.url}#/query/no_such")
    expect(page.get_by_role("alert")).to_contain_text("there is no query `no_such`")
    page.get_by_role("link", name="Overview").click()
    expect(page.locator(".rows .row").first).to_be_visible()


@pytest.fixture
def browser_page(browser: Browser) -> Iterator[Callable[[str], Page]]:
    """Opens pages that may log errors: a refused request is one."""
    context = browser.new_context()

    def open_(url: str) -> Page:
        page: Page = context.new_page()
        page.goto(url)
        return page

    yield open_
    context.close()


def test_leaving_a_page_frees_its_charts(served: Served, open_page: OpenPage) -> None:
    """Charts are destroyed when their page is left, and each visit has the same number of elements."""
    page = opened(served, open_page, "orders_000")
    counts = []
    for _ in range(3):
        expect(page.locator("canvas").first).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator(".rows .row").first).to_be_visible()
        assert page.locator("canvas").count() == 0
        counts.append(page.evaluate("document.querySelectorAll('*').length"))
        page.go_back()
        page.wait_for_function(SETTLED)
    assert max(counts) - min(counts) < 40


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_all_tabs_are_accessible(
    served: Served, open_page: OpenPage, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """No tab violates a rule of WCAG A and AA in both themes, and none is wider than the window."""
    page = open_page(f"{served.url}#/query/orders_000", theme=theme, width=width)
    found = {}
    for model in ("orders_000", "clicks_003"):
        for tab in TABS if model == "orders_000" else ("charts",):
            page.evaluate("hash => { location.hash = hash; }", f"#/query/{model}/{tab}")
            expect(page.locator("h1")).to_have_text(model)
            page.wait_for_function(SETTLED)
            found[f"{model} {tab}"] = violations(page)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                found[f"{model} {tab}"].append("too wide")
    assert {name: problems for name, problems in found.items() if problems} == {}


def test_charts_follow_the_width_of_the_window(served: Served, open_page: OpenPage) -> None:
    """While a window becomes narrower, the page is never wider than it."""
    page = opened(served, open_page, "orders_000/charts")
    for width in (900, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")
        expect(page.locator(".chart canvas").first).to_be_visible()


SERIES = """async () => {
  const { CHARTS } = await import('/assets/ui/query/series.js');
  const shown = (name) => {
    const box = document.body.appendChild(document.createElement('i'));
    box.style.color = `var(${name})`;
    const color = getComputedStyle(box).color;
    box.remove();
    return color;
  };
  return CHARTS.map(chart => chart.series.map(each => [chart.title, each.label, shown(each.color), String(each.dash)]));
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_lines_of_a_chart_differ_without_full_color_vision(served: Served, open_page: OpenPage, theme: str) -> None:
    """Two lines of a chart have other dashes, or colors that differ clearly with each deficiency of color vision."""
    page = opened(served, open_page, "orders_000/charts", theme=theme)
    alike = [
        f"{one[0]}: {one[1]}, {other[1]} ({vision})"
        for chart in page.evaluate(SERIES)
        for one, other in combinations(chart, 2)
        for vision in VISIONS
        if one[3] == other[3] and difference(read_color(one[2]), read_color(other[2]), vision) < CLEAR
    ]
    assert alike == []
