"""The live page and the documentation site as one product: links both ways, descriptions, and search, in a real browser."""

from __future__ import annotations

import json
import re
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from sqlstream.app.docs.generate import generate_docs
from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.ui.serve import listen, serving
from tests.support.browsing import OpenPage
from tests.support.ui_project import Served, page_of, served_project

ATTACK = "<img src=x onerror=window.broken=1><script>window.broken=1</script> [link](javascript:window.broken=1)"
FILES = {
    "project.yml": (
        "name: shop\ndefault_target: local\ntargets:\n  local: {}\n"
        "  prod: {ui_url: 'https://streams.example.com/shop/'}\n"
    ),
    "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
    "sources.yml": (
        "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n        path: orders\n"
        f"        description: 'Orders of **all** shops {ATTACK}'\n"
        "        columns:\n"
        "          - {name: id, data_type: bigint, description: Its number}\n"
        "          - {name: 'größe \"L\"', data_type: string}\n"
    ),
    "models/views/orders_valid.sql": "select * from {{ source('shop', 'orders') }}\n",
    "models/sales/orders.sql": "{{ config(sink='lake') }}\nselect id, 'vat' as tax from {{ ref('orders_valid') }}\n",
    "models/sales/orders_by_day.sql": "{{ config(sink='lake') }}\nselect id as number from {{ ref('orders_valid') }}\n",
    "models/other/returns.sql": "{{ config(sink='lake') }}\nselect id from {{ ref('orders_valid') }}\n",
    "models/returns.yml": (
        "models:\n"
        "  - name: orders\n"
        f"    description: \"# Every order\\n\\n- *once* {ATTACK}\\n\\n| a | b |\\n| - | - |\\n| 1 | 2 |\"\n"
        f"    columns: [{{name: id, description: 'The **number** {ATTACK}'}}, {{name: tax, description: ''}}]\n"
        "  - {name: returns, description: What customers send back of their orders}\n"
        "unit_tests:\n  - name: orders\n    model: returns\n    given: [{input: ref('orders_valid'), rows: [{id: 1}]}]\n"
        "    expect: {rows: [{id: 1}]}\n"
        "  - name: orders_are_kept\n    model: returns\n    given: [{input: ref('orders_valid'), rows: [{id: 1}]}]\n"
        "    expect: {rows: [{id: 1}]}\n"
    ),
}  # fmt: skip


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A project with hostile descriptions, which has not run."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def shop_page(shop: Path) -> Iterator[str]:
    """The URL of its live page."""
    with page_of(shop) as url:
        yield url


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path) as found:
        yield found


def found_by(page: Page, words: str) -> list[str]:
    """Returns what the open search finds, each as `kind name`."""
    page.get_by_role("combobox", name="Search the").fill(words)
    expect(page.locator("dialog.search .said")).to_contain_text("result")
    return [
        f"{option.locator('.kind-icon').get_attribute('title')} {option.locator('.name').inner_text()}"
        for option in page.locator("dialog.search").get_by_role("option").all()
    ]


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_a_query_and_its_docs_link_to_each_other(served: Served, open_page: OpenPage, width: int, theme: str) -> None:
    """The page of a query leads to its docs, for the same target, and back."""
    page = open_page(f"{served.url}#/query/orders_000?target=prod", width=width, theme=theme)

    page.locator(".query-head").get_by_role("link", name="Docs").click()
    expect(page.locator("h1")).to_have_text("orders_000")
    assert page.url == f"{served.url}docs/?target=prod#/node/model.observed.orders_000"
    expect(page.locator("main")).to_contain_text("Orders per minute and kind.")
    page.locator("main").get_by_role("link", name="Live page").click()
    expect(page.get_by_role("navigation", name="Parts of the query")).to_be_visible()
    assert page.url == f"{served.url}#/query/orders_000?target=prod"


def test_the_bars_of_both_pages_link_to_each_other(served: Served, open_page: OpenPage) -> None:
    """Both bars have the brand, the search and the theme, which both pages share, and a link to the other page."""
    page = open_page(served.url)

    for name, header in (("Docs", "queries"), ("Live page", "docs")):
        bar = page.locator("header.bar")
        expect(bar.locator(".brand")).to_have_text("sqlstream / observed")
        expect(bar.get_by_role("button", name="Search")).to_be_visible()
        if header == "queries":
            bar.get_by_role("button", name="Switch to the dark theme").click()
        expect(bar.get_by_role("button", name="Switch to the light theme")).to_be_visible()
        bar.get_by_role("link", name=name).click()
    expect(page.locator(".queries-card")).to_be_visible()


def test_docs_of_other_nodes_link_to_their_live_page(shop_page: str, open_page: OpenPage) -> None:
    """A source, a seed and a view have a link to their node on the live page; a unit test has none."""
    page = open_page(f"{shop_page}docs/#/node/source.shop.shop.orders")

    link = page.locator("main").get_by_role("link", name="Live page")
    expect(link).to_have_attribute("href", "../#/node/source.shop.shop.orders?target=local")
    page.evaluate("location.hash = '#/node/unit_test.shop.returns.orders'")
    expect(page.locator("h1")).to_have_text("orders")
    expect(link).to_have_count(0)


def test_a_generated_site_links_to_the_page_of_its_target(shop: Path, open_page: OpenPage) -> None:
    """With `ui_url` of the target, the site links to the live page; without it, there is no link."""
    node = "#/node/model.shop.orders"
    page = open_page(generate_docs(ProjectRequest(shop), static=True).page.as_uri() + node)
    expect(page.locator("h1")).to_have_text("orders")
    expect(page.get_by_role("link", name="Live page")).to_have_count(0)

    page.goto("about:blank")
    page.goto(generate_docs(ProjectRequest(shop, target="prod"), static=True).page.as_uri() + node)
    link = page.locator("main").get_by_role("link", name="Live page")
    expect(link).to_have_attribute("href", "https://streams.example.com/shop/#/query/orders?target=prod")


def test_docs_follow_the_files_of_the_project(shop: Path, shop_page: str, open_page: OpenPage) -> None:
    """The docs show what the files say now; while the project has errors, what they said before. No file is written."""
    page = open_page(f"{shop_page}docs/#/node/model.shop.returns")
    expect(page.locator("main")).to_contain_text("What customers send back of their orders")

    properties = shop / "models" / "returns.yml"
    properties.write_text(properties.read_text().replace("What customers send back", "All that comes back"))
    wait_for(page, lambda: page.locator("main").get_by_text("All that comes back").count() > 0)
    properties.write_text("models: [")
    page.reload()
    expect(page.locator("main")).to_contain_text("All that comes back")
    assert not (shop / "target" / "docs").exists()


def wait_for(page: Page, condition: Callable[[], bool]) -> None:
    """Loads a page again until a condition is met."""
    until = time.monotonic() + 60
    while True:
        page.reload()
        expect(page.locator("main h1")).to_be_attached()
        if condition():
            return
        assert time.monotonic() < until


def test_docs_that_cannot_be_shown_say_why(shop: Path) -> None:
    """A project that has not compiled yet, and an unknown target, have a page with the reason and a way out."""
    (shop / "models" / "returns.yml").write_text("models: [")

    with page_of(shop) as url:
        for path, reason in (("docs/", "does not compile"), ("docs/?target=%3Cb%3E", "no target `&lt;b&gt;`")):
            with pytest.raises(urllib.error.HTTPError, match="404") as raised:
                urllib.request.urlopen(url + path)
            text = raised.value.read().decode()
            assert reason in text
            assert '<a href="/">' in text


def test_docs_are_as_safe_as_the_page(shop: Path) -> None:
    """Without the token there is no documentation; with it, each answer has the page's policy, and no other files."""
    with serving(listen(UiRequest(port=0, token="s3cret")), ProjectRequest(shop)) as address:
        url = address.split("?")[0]

        def status(path: str, **headers: str) -> int:
            try:
                with urllib.request.urlopen(urllib.request.Request(url + path, headers=headers)) as answer:
                    assert "script-src 'self'" in answer.headers["content-security-policy"]
                    assert answer.headers["cross-origin-resource-policy"] == "same-origin"
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        known = {"Authorization": "Bearer s3cret"}
        for path in ("docs/", "docs/assets/site.js", "api/search"):
            assert status(path) == 401
            assert status(path, **known) == 200
            assert status(path, **known, Origin="https://evil.example") == 403
            assert status(path, **known, Host="evil.example") == 421
        for path in ("docs/data.js", "docs/assets/", "docs/assets/..%2f..%2fui%2fmain.js", "docs/project.yml"):
            assert status(path, **known) == 404


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_descriptions_are_markdown_and_run_nothing(
    shop_page: str, open_page: OpenPage, violations: Callable[[Page], list[str]], theme: str
) -> None:
    """Descriptions of a query, its columns and its sources are HTML as in the docs; what they attack with is text."""
    page = open_page(f"{shop_page}#/query/orders/columns", theme=theme)

    head = page.locator(".query-head .description")
    expect(head.locator("h3")).to_have_text("Every order")
    head.get_by_role("button", name="Show all").click()
    expect(head.locator("td")).to_have_text(["1", "2"])
    expect(head.get_by_role("button")).to_have_count(0)
    expect(page.get_by_role("region", name="Columns").locator("strong").first).to_have_text("number")
    expect(page.get_by_role("region", name="Sources").locator("strong")).to_have_text("all")
    for text in ("<script>window.broken=1</script>", "onerror=window.broken=1", "[link](javascript:window.broken=1)"):
        expect(page.get_by_text(text)).to_have_count(3)
    assert page.locator("main img, main script, main a[href^='javascript:']").count() == 0
    assert page.evaluate("window.broken") is None
    assert violations(page) == []
    page.goto(f"{shop_page}#/query/orders_by_day")
    expect(page.locator(".query-meta")).to_contain_text("orders_by_day.sql")
    expect(head).to_be_hidden()


@pytest.mark.parametrize("path", ["", "docs/"])
def test_search_shows_what_is_most_likely_first(shop_page: str, open_page: OpenPage, path: str) -> None:
    """An exact name comes first, then names that begin with the text, other names, columns, descriptions; tests last."""
    page = open_page(shop_page + path)
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search the")).to_be_focused()

    tests = ["test orders"] if path else []
    last = ["test orders_are_kept"] if path else []
    named = ["query orders", "source shop.orders", *tests]
    assert found_by(page, "orders") == [*named, "query orders_by_day", "view orders_valid", "query returns", *last]
    assert found_by(page, "ordres")[:2] == ["query orders", "query orders_by_day"]
    assert found_by(page, "number")[0] == "query orders_by_day"
    assert found_by(page, "größe")[0] in ("view orders_valid", "source shop.orders")
    assert found_by(page, "vat") == ["query orders"]


def test_the_live_page_loads_the_search_when_it_opens(served: Served, open_page: OpenPage) -> None:
    """Nothing of the search is loaded before somebody searches; results have the states of queries, and Enter opens one."""
    page = open_page(served.url)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    expect(page.locator(".row[data-model='orders_000']")).to_be_visible()
    assert not page.evaluate(
        "performance.getEntriesByType('resource').some(({ name }) => /minisearch|api.search/.test(name))"
    )

    page.get_by_label("Filter queries").fill("status:error clicks.events")
    page.get_by_role("button", name="Search views, sources and columns").click()
    expect(page.get_by_role("combobox", name="Search the")).to_have_value("error clicks.events")
    assert found_by(page, "clicks_003") == ["query clicks_003"]
    expect(page.locator("dialog.search").get_by_role("option")).to_contain_text("Failed")
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("clicks_003")
    assert any("minisearch" in url for url in loaded)
    page.keyboard.press("Control+k")
    assert found_by(page, "payments.events")[0] == "source payments.events"
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/node/source\.observed\.payments\.events$"))
    page.keyboard.press("Control+k")
    assert found_by(page, "lake") == ["sink lake", *found_by(page, "lake")[1:]]
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"#/node/sink\.observed\.lake$"))


def test_the_first_page_says_what_the_project_does(shop_page: str, open_page: OpenPage) -> None:
    """It has the project in one sentence, what each folder reads and writes, and queries, views and sources in this order."""
    page = open_page(f"{shop_page}docs/")

    expect(page.get_by_role("region", name="About this project")).to_contain_text(
        "3 queries read 1 source through 1 view, and write to 1 sink."
    )
    flows = page.get_by_role("region", name="What flows", exact=True).locator("tbody tr")
    assert [re.sub(r"\s+", " ", row.inner_text()).strip() for row in flows.all()] == [
        "other shop.orders 1 lake",
        "sales shop.orders 2 lake",
    ]
    headings = page.locator("main h2").all_inner_texts()
    assert [each for each in headings if each in ("Queries", "Views", "Sources")] == ["Queries", "Views", "Sources"]
    queries = page.get_by_role("region", name="Queries", exact=True).locator("tbody th, tbody td:first-child")
    assert queries.all_inner_texts() == ["other", "returns", "sales", "orders", "orders_by_day"]
    flows.nth(1).get_by_role("link", name="sales").click()
    expect(page.locator("#selected")).to_contain_text("4 of ")


def test_names_with_odd_characters_have_links(shop_page: str, open_page: OpenPage) -> None:
    """A column with quotes, a space and an umlaut has docs, and a hostile address shows no more than text."""
    column = 'größe "L"'
    page = open_page(f"{shop_page}docs/#/node/source.shop.shop.orders/column/{quote(column)}")

    expect(page.locator("#column-lineage")).to_contain_text(column)
    page.goto(f"{shop_page}docs/?target=local&x={quote(ATTACK)}#/node/{quote(ATTACK, safe='')}")
    expect(page.locator("h1")).to_have_text("Not found")
    assert page.evaluate("window.broken") is None
    assert (
        json.loads(page.evaluate("document.getElementById('sqlstream-docs').textContent"))["project"]["name"] == "shop"
    )
