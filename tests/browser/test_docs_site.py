"""The documentation site of the worked examples in a real browser, opened from a file."""

from __future__ import annotations

import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from sqlstream.app.docs.generate import generate_docs
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.loading.selecting import select
from sqlstream.app.request import ProjectRequest, Selection, UiRequest
from sqlstream.app.ui.serve import serving_docs
from sqlstream.errors import FindingsError
from tests.support.browsing import ROOT, OpenPage

MODEL = "#/node/model.examples.cloudtrail_failed_logins"
VIEWS = {
    "overview": "#/",
    "kind": "#/kind/source",
    "query": MODEL,
    "column": f"{MODEL}/column/failures",
    "source": "#/node/source.examples.aws.cloudtrail_logs",
    "seed": "#/kind/seed",
    "sink": "#/node/sink.examples.warehouse",
    "exposure": "#/node/exposure.examples.security_dashboard",
    "macro": "#/node/macro.examples.log4j_part",
    "graph": "#/graph?select=%2Bcloudtrail_hourly",
}
SELECTORS = (
    "", "*", "cloudtrail_hourly", "+cloudtrail_hourly", "cloudtrail_in_order+", "1+cloudtrail_hourly", "2+cloudtrail_hourly+1",
    "@log_lines", "tag:security", "tag:s*", "tag:[!a-m]*", "source:aws", "source:aws.*+", "source:aws.cloudtrail_logs+", "sink:warehouse",
    "path:models/events", "path:models/*/c*.sql", "path:models/**", "models/logs", "events", "examples.events.*",
    "cloudtrail_hourly.sql", "file:log_*", "config.output_mode:complete", "config.enabled:true", "resource_type:source",
    "resource_type:seed", "package:this", "tag:security,config.output_mode:append", "cloudtrail log_levels",
    "+events_hourly,+events_by_city", "cloudtrail_*,", "?vents_hourly", "nothing_such",
)  # fmt: skip
EXCLUDES = ("", "tag:security", "cloudtrail_hourly+ path:models/logs")


def test_a_model_has_everything_about_it(static_site: str, open_page: OpenPage) -> None:
    """The page of a query shows its description, columns, SQL in both forms, output, guarantee, emission and tests."""
    page = open_page(static_site + MODEL)

    expect(page.locator("h1")).to_have_text("cloudtrail_failed_logins")
    for title in (
        "Description",
        "Lineage",
        "Columns",
        "SQL",
        "Output",
        "When it emits rows",
        "Unit tests",
        "Configuration",
    ):
        expect(page.get_by_role("region", name=title, exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Output", exact=True)).to_contain_text("exactly once")
    expect(page.locator(".code")).to_contain_text("{{ ref('cloudtrail_in_order') }}")
    page.get_by_role("tab", name="Compiled").click()
    expect(page.locator(".code")).to_contain_text("WATERMARK event_time DELAY OF INTERVAL")
    expect(page.locator(".code .sql-keyword").first).to_be_visible()


def test_the_lineage_of_a_column_goes_through_models(static_site: str, open_page: OpenPage) -> None:
    """A column leads to the columns of the model that it reads, and on to the source; downwards the same way."""
    page = open_page(static_site + MODEL)

    page.get_by_role("link", name="failures", exact=True).click()
    panel = page.locator("#column-lineage")
    for text in ("cloudtrail_in_order.event_name", "aws.cloudtrail_logs_in_order.Records"):
        expect(panel.get_by_role("link", name=text, exact=True)).to_be_visible()
    expect(panel.locator(".graph .node")).to_have_count(4)
    panel.get_by_role("link", name="aws.cloudtrail_logs_in_order.Records", exact=True).click()
    expect(page.locator("h1")).to_have_text("aws.cloudtrail_logs_in_order")
    expect(panel.get_by_role("link", name="cloudtrail_hourly.hour", exact=True)).to_be_visible()


def test_addresses_can_be_sent_and_back_goes_back(static_site: str, open_page: OpenPage) -> None:
    """Each page has an address; back and forward work, and an unknown address says so."""
    page = open_page(static_site + "#/node/source.examples.aws.cloudtrail_logs")

    expect(page.locator("h1")).to_have_text("aws.cloudtrail_logs")
    page.locator("main").get_by_role("link", name="cloudtrail_events", exact=True).click()
    expect(page.locator("h1")).to_have_text("cloudtrail_events")
    page.go_back()
    expect(page.locator("h1")).to_have_text("aws.cloudtrail_logs")
    page.go_forward()
    expect(page.locator("h1")).to_have_text("cloudtrail_events")
    expect(page).to_have_title("cloudtrail_events · examples")
    page.evaluate("location.hash = '#/node/model.examples.gone'")
    expect(page.locator("h1")).to_have_text("Not found")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("failed logins", "cloudtrail_failed_logins"),
        ("user_agent", "cloudtrail_events"),
        ("get_json_object", "cloudtrail_failed_logins"),
    ],
)
def test_search_finds_names_columns_and_sql(static_site: str, open_page: OpenPage, words: str, found: str) -> None:
    """The key / opens the search; it finds words of descriptions, columns and SQL, and Enter opens the chosen result."""
    page = open_page(static_site)

    page.keyboard.press("/")
    page.keyboard.type(words)
    expect(page.get_by_role("option", name=found).first).to_be_visible()
    first = page.get_by_role("option").first.locator(".name").inner_text()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(first)


def test_selectors_mean_the_same_as_on_the_command_line(examples: Path, static_site: str, open_page: OpenPage) -> None:
    """Each selector gives the nodes in the browser that it gives in Python."""
    page = open_page(static_site)
    compiled = load_for_reading(ProjectRequest(examples)).compiled

    def in_python(text: str, exclude: str) -> list[str]:
        chosen = Selection((text,) if text else (), (exclude,) if exclude else ())
        try:
            return sorted(select(compiled, chosen)[0])
        except FindingsError:  # nothing matches
            return []

    pairs = [(text, exclude) for text in SELECTORS for exclude in EXCLUDES]
    found = page.evaluate("pairs => pairs.map(([text, exclude]) => sqlstreamSite.select(text, exclude))", pairs)
    wrong = [pair for pair, nodes in zip(pairs, found, strict=True) if sorted(nodes) != in_python(*pair)]
    assert wrong == []


def test_the_graph_shows_a_selection(static_site: str, open_page: OpenPage) -> None:
    """The graph shows the selected nodes with their sinks, its address has the selector, and a wrong one is explained."""
    page = open_page(static_site + "#/graph")

    page.get_by_label("Select nodes").fill("+cloudtrail_hourly")
    page.keyboard.press("Enter")
    expect(page.locator("#selected")).to_have_text(re.compile(r"^3 of \d+ nodes$"))
    expect(page.locator(".graph .node")).to_have_count(4)
    assert page.url.endswith("#/graph?select=%2Bcloudtrail_hourly")
    page.get_by_label("Select nodes").fill("tags:security")
    page.keyboard.press("Enter")
    expect(page.locator("#selected")).to_contain_text("tags is not a selection method")


def test_the_graph_works_with_the_keyboard(static_site: str, open_page: OpenPage) -> None:
    """Arrow keys go along the lines, which highlights the family of a node, and Enter opens a node."""
    page = open_page(static_site + "#/graph?select=%2Bcloudtrail_hourly")

    page.locator(".graph .node[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator(".graph .node:focus")).to_have_attribute("data-id", "model.examples.cloudtrail_in_order")
    expect(page.locator(".graph .node.on")).to_have_count(4)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("cloudtrail_in_order")


@pytest.mark.slow
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1280, "dark"), (390, "light"), (390, "dark")])
def test_views_are_accessible(
    static_site: str, open_page: OpenPage, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """No view violates WCAG A or AA, in both themes, and no view is wider than the screen."""
    page = open_page(static_site, width=width, height=844, theme=theme)
    found = {}
    for name, view in VIEWS.items():
        page.goto(static_site + view)
        expect(page.locator("main h1")).to_be_attached()
        page.wait_for_function(
            "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
        )
        found[name] = violations(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            found[name].append("wider than the screen")
    page.keyboard.press("/")
    page.keyboard.type("cloud")
    expect(page.get_by_role("option").first).to_be_visible()
    found["search"] = violations(page)

    assert [f"{name}: {problem}" for name, problems in found.items() for problem in problems] == []


def test_the_theme_can_be_changed(static_site: str, open_page: OpenPage) -> None:
    """The button changes the theme, which stays after a reload."""
    page = open_page(static_site, theme="light")

    before = page.evaluate("getComputedStyle(document.body).color")
    page.get_by_role("button", name="Switch to the dark theme").click()
    assert page.evaluate("getComputedStyle(document.body).color") != before
    # Chromium hands what a page stores to another process, which a reloaded page may ask before it has it.
    for _ in range(5):
        page.reload()
        name = page.get_by_role("button", name="theme").get_attribute("aria-label")
        if name == "Switch to the light theme":
            break
    assert name == "Switch to the light theme"


def test_a_phone_has_a_menu(static_site: str, open_page: OpenPage) -> None:
    """At 390 pixels, a button opens the list of nodes, and choosing one closes it."""
    page = open_page(static_site, width=390, height=844)

    expect(page.get_by_role("navigation")).to_be_hidden()
    page.get_by_role("button", name="Open the list of nodes").click()
    page.get_by_label("Filter the list by name").fill("failed_logins")
    page.get_by_role("navigation").get_by_role("link", name="cloudtrail_failed_logins").click()
    expect(page.locator("h1")).to_have_text("cloudtrail_failed_logins")
    expect(page.get_by_role("navigation")).to_be_hidden()


def test_the_folder_works_from_a_server_and_from_a_file(examples: Path, open_page: OpenPage) -> None:
    """`docs generate` without --static writes a folder that opens from a file and from `docs serve`."""
    made = generate_docs(ProjectRequest(examples), compile_=False)
    with serving_docs(examples, UiRequest(port=0)) as served:
        for address in (made.page.as_uri(), served):
            expect(open_page(address + MODEL).locator("h1")).to_have_text("cloudtrail_failed_logins")
        for path in ("assets/", "../manifest.json", "%2e%2e/manifest.json"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                urllib.request.urlopen(served + path)


def test_descriptions_cannot_run_scripts(tmp_path: Path, open_page: OpenPage) -> None:
    """HTML in descriptions, names, SQL and configuration is shown as text, and links cannot run scripts."""
    attack = "<img src=x onerror=window.broken=1><script>window.broken=1</script>"
    files = {
        "project.yml": "name: shop\n",
        "sinks.yml": "sinks: [{name: lake, format: parquet, path: '{{ model.name }}'}]\n",
        "sources.yml": (
            "sources:\n  - name: shop\n    tables:\n      - name: orders\n        format: json\n        path: orders\n"
            f"        description: '{attack} [link](javascript:window.broken=1)'\n"
            f"        meta: {{owner: '{attack}'}}\n"
            f"        columns:\n          - {{name: 'a', data_type: string, description: '{attack}'}}\n"
        ),
        "models/orders.sql": f"{{{{ config(sink='lake') }}}}\nselect a, '</script>{attack}' as b from {{{{ source('shop', 'orders') }}}}\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    page = open_page(generate_docs(ProjectRequest(tmp_path), static=True).page.as_uri())

    for view in (
        "#/node/source.shop.shop.orders",
        "#/node/model.shop.orders",
        "#/node/source.shop.shop.orders/column/a",
    ):
        page.evaluate("view => { location.hash = view; }", view)
        expect(page.locator("main")).to_contain_text("onerror=window.broken")
        assert page.locator("main img, main script, main a[href^='javascript:']").count() == 0
    assert page.evaluate("window.broken") is None


def test_an_exposure_shows_what_it_reads_and_who_owns_it(static_site: str, open_page: OpenPage) -> None:
    """The page of an exposure has its owner and links to the models that it reads; the first page counts it."""
    page = open_page(static_site + VIEWS["exposure"])

    expect(page.locator("h1")).to_have_text("security_dashboard")
    for text in ("Calls and failed logins", "Security team"):
        expect(page.locator("main")).to_contain_text(text)
    expect(page.locator("main a", has_text="cloudtrail_failed_logins").first).to_be_visible()
    page.evaluate("location.hash = '#/'")
    expect(page.locator(".tile", has_text="Exposure")).to_contain_text("1 Exposure")


@pytest.mark.skipif(
    not os.environ.get("SQLSTREAM_SCREENSHOTS"), reason="set SQLSTREAM_SCREENSHOTS=1 to renew the images"
)
def test_images_of_the_documentation(static_site: str, open_page: OpenPage) -> None:
    """Writes the images of docs/docs-site.md, in both themes."""
    images = ROOT / "docs" / "images"
    images.mkdir(exist_ok=True)
    shots = {
        "model": (VIEWS["column"], 1280, 1000),
        "graph": ("#/graph?select=cloudtrail+devices+logs", 1280, 760),
        "overview": ("#/", 1280, 900),
        "source": (VIEWS["source"], 1280, 900),
        "exposure": (VIEWS["exposure"], 1280, 900),
        "phone": (VIEWS["query"], 390, 844),
    }
    for theme in ("light", "dark"):
        for name, (view, width, height) in shots.items():
            page = open_page(static_site + view, width=width, height=height, theme=theme)
            expect(page.locator("main h1")).to_be_attached()
            page.wait_for_function(
                "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))"
            )
            page.evaluate("scrollTo(0, 0)")
            page.screenshot(path=images / f"docs-{name}-{theme}.png")
