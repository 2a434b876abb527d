"""The pages of sources, views and sinks in a real browser."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.support.browsing import OpenPage
from tests.support.ui_project import Served, served_project

SOURCE, VIEW, SINK = "source.observed.payments.events", "model.observed.payments_clean", "sink.observed.lake"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path_factory.mktemp("nodes")) as found:
        yield found


def test_a_source_shows_what_reads_it(served: Served, open_page: OpenPage) -> None:
    """Its page has its columns, and its readers with what flows to each of them and what they have not read."""
    source = {"name": "payments.events", "lag": {"records": 1_234}, "input_rows_per_second": 12.5, "rows_in": 10}
    page = open_page(f"{served.url}#/node/{SOURCE}")

    readers = page.get_by_role("region", name="Queries that read it")
    row = readers.locator("tr", has=page.get_by_role("link", name="payments_001"))
    expect(row).to_contain_text("Running")
    served.run.changed_batch(1, {"sources": [source]})
    expect(row).to_contain_text("1,234")
    expect(row).to_contain_text("payments_clean")
    expect(page.locator(".node-tiles")).to_contain_text("Largest lag1,234")
    for text in ("amount", "timestamp"):
        expect(page.get_by_role("region", name="Columns").first).to_contain_text(text)
    expect(page.get_by_role("region", name="Settings")).to_contain_text("quarantine")
    served.run.changed_batch(1, {"sources": [{**source, "lag": {"records": 77}}]})
    expect(row).to_contain_text("77")
    row.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("payments_001")


def test_names_lead_to_the_pages_of_nodes(served: Served, open_page: OpenPage) -> None:
    """The sink and the sources of a query are links, as is each node of the graph; none of them filters the table."""
    page = open_page(f"{served.url}#/query/payments_001/columns")
    page.get_by_role("link", name="lake").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("lake")
    expect(page.get_by_role("region", name="Guarantees").first).to_contain_text("exactly once")
    page.go_back()
    page.get_by_role("region", name="Views on the way").get_by_role("link", name="payments_clean").click()
    expect(page.get_by_role("region", name="SQL as written").first).to_contain_text("payments")
    page.go_back()
    page.get_by_role("region", name="Reads").get_by_role("link", name="payments.events").click()
    expect(page.locator(".query-meta")).to_contain_text("sources.yml")
    page.goto(f"{served.url}#/node/model.observed.payments_001")
    expect(page).to_have_url(f"{served.url}#/query/payments_001")


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280, 1440])
def test_pages_of_nodes_fit_and_are_accessible(
    served: Served, open_page: OpenPage, violations: object, width: int, theme: str
) -> None:
    """No page of a node is wider than the window, and axe finds nothing."""
    page = open_page(served.url, width=width, theme=theme)
    for node in (SOURCE, VIEW, SINK):
        page.goto(f"{served.url}#/node/{node}")
        expect(page.locator(".stack table").first).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []  # type: ignore[operator]


def test_an_unknown_node_says_so(served: Served, browser: object) -> None:
    """The page names the node, and leads back to the overview."""
    page: Page = browser.new_page()  # type: ignore[attr-defined]
    page.goto(f'{served.url}#/node/source.observed.it\'s \u00e4 "name"')
    expect(page.get_by_role("alert")).to_contain_text("the project has no node `source.observed.it's \u00e4")
    expect(page.get_by_role("link", name="Overview", exact=True)).to_be_visible()
    page.close()
