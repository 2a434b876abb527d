"""The live page with the keyboard only: focus, ways back, keys that can be turned off, and updates that can be paused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browsing import OpenPage
from tests.support.ui_project import Served, served_project

FOCUSED = "() => document.activeElement.textContent.trim()"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with enough queries to scroll."""
    with served_project(tmp_path_factory.mktemp("keyboard"), queries=60, batches=1_600) as found:
        yield found


def open_tenth(page: Page, text: str) -> tuple[str, int]:
    """Filters the table, opens the tenth query with the keyboard, and returns its name and how far it was scrolled."""
    expect(page.locator(".rows .row")).to_have_count(61)
    page.keyboard.press("/")
    page.keyboard.type(text)
    expect(page.locator(".rows .row")).to_have_count(12)
    page.keyboard.press("ArrowDown")
    for _ in range(9):
        page.keyboard.press("ArrowDown")
    found = page.evaluate(FOCUSED), page.evaluate("scrollY")
    page.keyboard.press("Enter")
    return found


def test_the_heading_of_a_new_view_has_the_focus(served: Served, open_page: OpenPage) -> None:
    """So a screen reader reads it. Tabs keep the focus where it is."""
    page = open_page(served.url, height=500)
    name, _ = open_tenth(page, "orders")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)

    page.get_by_role("link", name="SQL", exact=True).press("Enter")
    expect(page.get_by_role("link", name="SQL", exact=True)).to_have_attribute("aria-current", "page")
    assert page.evaluate(FOCUSED) == "SQL"
    page.keyboard.press("]")
    expect(page.get_by_role("link", name="Columns", exact=True)).to_have_attribute("aria-current", "page")
    expect(page.get_by_role("link", name="Columns", exact=True)).to_be_focused()


@pytest.mark.parametrize("way", ["Escape", "back", "link", "keys"])
def test_the_way_back_leads_to_where_one_was(served: Served, open_page: OpenPage, way: str) -> None:
    """The filter, the sorting, how far the page was scrolled and the focus are as before."""
    page = open_page(f"{served.url}#/?sort=-input", height=500)
    name, scrolled = open_tenth(page, "orders")
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    page.get_by_role("link", name="SQL", exact=True).click()

    if way == "back":
        page.go_back()
        page.go_back()
    elif way == "keys":
        page.keyboard.press("g")
        page.keyboard.press("o")
    elif way == "link":
        page.get_by_role("link", name="Overview", exact=True).first.click()
    else:
        page.keyboard.press("Escape")

    expect(page.get_by_role("searchbox", name="Filter queries")).to_have_value("orders")
    expect(page.locator(".rows .row")).to_have_count(12)
    expect(page.locator("[aria-sort=descending]")).to_contain_text("In /s")
    expect(page.locator(".row a:focus")).to_have_text(name)
    assert abs(page.evaluate("scrollY") - scrolled) <= 1
    assert scrolled > 0


def test_single_keys_can_be_turned_off(served: Served, open_page: OpenPage) -> None:
    """Then no letter does anything, also after a reload; Escape and the keys of the table still work."""
    page = open_page(served.url)
    expect(page.locator(".rows .row")).to_have_count(61)
    page.keyboard.press("?")
    page.get_by_label("Use these keys.").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.locator(".rows .row")).to_have_count(61)
    before = page.evaluate("document.documentElement.dataset.theme || ''")
    for key in ("t", "/", "?", "g", "o"):
        page.keyboard.press(key)
    assert page.evaluate("document.documentElement.dataset.theme || ''") == before
    assert page.evaluate("document.activeElement.tagName") == "BODY"
    expect(page.get_by_role("dialog")).to_have_count(0)

    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Use these keys.").check()
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox", name="Filter queries")).to_be_focused()


def test_live_updates_can_be_paused(served: Served, open_page: OpenPage) -> None:
    """Nothing changes until they continue; the page says since when. Then it has what it missed."""
    page = open_page(served.url)
    cell = page.locator(".row[data-model='orders_000'] .c-late")
    served.run.changed_batch(0, {}, late_rows=11)
    expect(cell).to_have_text("11")

    page.get_by_role("button", name="Pause live updates").press("Enter")
    expect(page.locator(".connection")).to_contain_text("Paused since")
    served.run.changed_batch(0, {}, late_rows=99)
    page.goto(f"{served.url}#/query/orders_005")
    expect(page.get_by_role("heading", level=1)).to_have_text("orders_005")
    page.go_back()
    expect(cell).to_have_text("11")

    page.get_by_role("button", name="Continue live updates").press("Enter")
    expect(cell).to_have_text("99")
    expect(page.locator(".connection")).to_contain_text("Live")
