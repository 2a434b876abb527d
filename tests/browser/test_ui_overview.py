"""The overview of the live page in a real browser, on generated runs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browsing import OpenPage
from tests.support.ui_project import QUERIES, Served, empty_project, free_port, generated, page_of, served_project

Serve = Callable[[Path], str]

WATCH_ROWS = """() => {
  window.changedRows = new Set();
  new MutationObserver(changes => changes.forEach(change => {
    const row = (change.target.closest ? change.target : change.target.parentElement).closest('.row');
    const cell = (change.target.closest ? change.target : change.target.parentElement).closest('.cell');
    if (row && !cell?.matches('.c-fresh, .c-behind, .c-last')) window.changedRows.add(row.dataset.model);
  })).observe(document.querySelector('.rows'), {subtree: true, childList: true, characterData: true, attributes: true});
}"""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path_factory.mktemp("overview")) as found:
        yield found


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Serves the pages of projects until the end of the test; `open_page` must come after it."""
    with ExitStack() as opened:
        yield lambda folder: opened.enter_context(page_of(folder))


def row(page: Page, model: str, column: str) -> str:
    """Returns the text of a cell."""
    return page.locator(f".row[data-model='{model}'] .c-{column}").inner_text()


def test_the_overview_shows_all_queries(served: Served, open_page: OpenPage) -> None:
    """Each query has a row with its figures; failed and silent ones are first and in the list of problems."""
    page = open_page(served.url)

    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)
    assert page.locator(".rows .row .name").all_inner_texts()[:3] == ["clicks_003", "shipping_007", "clicks_008"]
    assert row(page, "clicks_003", "status") == "Failed"
    assert row(page, "shipping_007", "status") == "No output"
    for column in ("fresh", "input", "processed", "batch", "behind", "state", "bytes", "last"):
        assert any(letter.isdigit() for letter in row(page, "clicks_008", column)), column
    assert row(page, "payments_011", "restarts") == "3"
    chart = page.locator(".row[data-model='clicks_008'] .c-input .spark .stroke")
    assert len(chart.get_attribute("d") or "") > len("M0 0L1 1")
    problems = page.get_by_role("region", name="2 problems")
    expect(problems).to_contain_text("The value 'n/a' of the type STRING cannot be cast to DOUBLE")
    expect(problems).to_contain_text("the watermark has not reached the end of a window")
    page.get_by_role("button", name="Show the graph").click()
    expect(page.locator(".graph .node")).not_to_have_count(0)
    expect(page.locator(".graph .edge.flows").first).to_be_attached()
    page.reload()
    expect(page.locator(".graph .node")).not_to_have_count(0)
    page.get_by_role("button", name="Hide the graph").click()
    expect(page.locator(".graph .node")).to_have_count(0)
    assert page.title() == "observed · sqlstream"


def test_cells_follow_the_run(served: Served, open_page: OpenPage) -> None:
    """A batch in the journal changes the cells of its query, and touches no other row."""
    page = open_page(served.url)
    expect(page.locator(".connection")).to_have_text("Live")
    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)
    page.locator(".rows .row").first.hover()  # rows keep their places under the pointer
    page.evaluate(WATCH_ROWS)

    source = {"name": "payments.events", "lag": {"records": 5_000}}
    progress = {"input_rows_per_second": 4_321.0, "duration_ms": 61_000, "sources": [source]}
    served.run.changed_batch(1, progress, late_rows=77)

    expect(page.locator(".row[data-model='payments_001'] .c-input")).to_have_text("4.32k")
    expect(page.locator(".row[data-model='payments_001'] .c-batch")).to_have_text("1 min 1 s")
    expect(page.locator(".row[data-model='payments_001'] .c-late")).to_have_text("77")
    expect(page.locator(".row[data-model='payments_001'] .c-lag")).to_have_text("5,000")
    assert page.evaluate("[...window.changedRows]") == ["payments_001"]


def test_a_failure_appears(served: Served, open_page: OpenPage) -> None:
    """A query that fails during a run becomes Failed, and its message is in the list of problems."""
    page = open_page(served.url)
    expect(page.locator(".row[data-model='orders_015'] .c-status")).to_have_text("Running")

    error = {
        "code": "query-failed",
        "message": "the disk is full",
        "why": "no space",
        "fix": "free some",
        "severity": "error",
        "location": None,
    }
    served.run.event("query_ended", 15, {"error": error}, status="error", error=error)

    expect(page.locator(".row[data-model='orders_015'] .c-status")).to_have_text("Failed")
    expect(page.locator(".problems")).to_contain_text("the disk is full")
    expect(page.get_by_role("button", name="2 failed")).to_be_visible()
    served.run.batch(15)
    expect(page.locator(".row[data-model='orders_015'] .c-status")).to_have_text("Running")


def test_a_refused_run_is_a_problem(tmp_path: Path, serve: Serve, open_page: OpenPage) -> None:
    """A run that is refused while the page is open appears among the problems with its reasons."""
    run = generated(tmp_path)
    page = open_page(serve(tmp_path))
    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)
    run.end()

    finding = {"code": "state-change", "message": "`a` has changed", "why": "its key", "fix": "undo it"}
    results = {
        "metadata": {"invocation_id": "refused", "target": "local"},
        "status": "error",
        "findings": [{**finding, "severity": "error", "location": None}],
        "results": [],
    }
    (tmp_path / "target").mkdir(exist_ok=True)
    (tmp_path / "target/run_results.json").write_text(json.dumps(results))
    run.refuse("refused")

    expect(page.locator(".problems")).to_contain_text("the last run was refused before any query started:")
    expect(page.locator(".problems")).to_contain_text("fix: undo it")


def test_the_table_filters_and_sorts(served: Served, open_page: OpenPage) -> None:
    """Words, `status:`, and a click on a state filter; a click on a head sorts; the address has both."""
    page = open_page(served.url)
    names = page.locator(".rows .row .name")

    page.get_by_role("button", name="1 failed").click()
    expect(names).to_have_text(["clicks_003"])
    page.get_by_role("searchbox").fill("folder:orders")
    expect(names).to_have_count(4)
    page.get_by_role("button", name="In /s").click()
    expect(page.locator(".head .c-input")).to_have_attribute("aria-sort", "descending")
    sorted_names = names.all_text_contents()
    assert "q=folder%3Aorders" in page.url
    assert "sort=-input" in page.url
    page.reload()
    expect(names).to_have_count(4)
    assert sorted(names.all_text_contents()) == sorted(sorted_names)
    page.get_by_role("searchbox").fill("no such query")
    expect(page.get_by_text("No query matches the filter.")).to_be_visible()


def test_the_keyboard_is_enough(served: Served, open_page: OpenPage) -> None:
    """/ filters, the arrows choose a query, Enter opens it, Esc and g o go back, ? shows the keys, and / returns to the filter."""
    page = open_page(served.url)
    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)

    page.keyboard.press("/")
    page.keyboard.type("shipping")
    page.keyboard.press("ArrowDown")
    first = page.locator(".name:focus").inner_text()
    page.keyboard.press("ArrowDown")
    second = page.locator(".name:focus").inner_text()
    assert first != second
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(second)
    page.keyboard.press("]")
    expect(page.locator(".tabs [aria-current]")).to_have_text("Batches")
    page.keyboard.press("g")
    page.keyboard.press("o")
    expect(page.locator(".name:focus")).to_have_text(second)
    page.keyboard.press("Escape")
    expect(page.locator(".rows .row")).to_have_count(QUERIES + 1)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog", name="Keys")).to_have_count(0)
    page.locator(".rows .name").first.click()
    expect(page.locator(".tabs")).to_be_visible()
    page.keyboard.press("/")
    expect(page.get_by_role("searchbox")).to_be_focused()


def test_the_graph_opens_queries_and_filters_by_folder(served: Served, open_page: OpenPage) -> None:
    """Many nodes are shown by folder; a folder filters the table, and all nodes can be shown."""
    page = open_page(served.url)

    page.get_by_role("button", name="Show the graph").click()
    group = page.locator(".graph .node", has_text="orders · 4 queries")
    expect(group).to_be_visible()
    group.click()
    page.get_by_role("button", name="Filter the table").click()
    expect(page.get_by_role("searchbox")).to_have_value("folder:orders")
    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".graph .node.kind-query")).to_have_count(QUERIES + 1)
    page.locator(".graph .node", has_text="orders_005").press("Enter")
    expect(page.locator("h1")).to_have_text("orders_005")


def test_runs_and_targets_can_be_chosen(served: Served, open_page: OpenPage) -> None:
    """The runs are listed with their states; another target has its own queries."""
    page = open_page(served.url)

    page.get_by_role("button", name="Runs: 1 running").click()
    dialog = page.get_by_role("dialog", name="Runs")
    expect(dialog.locator("tbody tr")).to_have_count(2)
    expect(dialog).to_contain_text("Running")
    page.keyboard.press("Escape")
    page.get_by_label("Target").select_option("prod")
    expect(page.get_by_role("heading", name="Nothing has run yet")).to_be_visible()
    assert "target=prod" in page.url


def test_two_hundred_queries_change_only_what_changed(serve: Serve, tmp_path: Path, open_page: OpenPage) -> None:
    """With 200 queries, an update changes one row, rows out of view are not laid out, and the page stays small."""
    run = generated(tmp_path, 200, 2_000)
    page = open_page(serve(tmp_path))
    expect(page.locator(".rows .row")).to_have_count(201)
    expect(page.locator(".connection")).to_have_text("Live")
    page.locator(".row[data-model='orders_120']").scroll_into_view_if_needed()
    page.locator(".row[data-model='orders_120']").hover()
    expect(page.locator(".row[data-model='orders_120'] .c-batch")).to_contain_text(re.compile(r"\d"))
    page.evaluate(WATCH_ROWS)
    run.changed_batch(120, {"input_rows_per_second": 4_321.0})
    expect(page.locator(".row[data-model='orders_120'] .c-input")).to_have_text("4.32k")
    assert page.evaluate("[...window.changedRows]") == ["orders_120"]
    assert page.evaluate("document.querySelectorAll('*').length") < 12_000
    page.get_by_role("button", name="Show the graph").click()
    expect(page.locator(".graph .node").first).to_be_visible()
    assert page.locator(".graph .node").count() < 40
    assert page.locator(".problems li").count() <= 7
    run.end()


def test_a_project_that_has_not_run_says_what_to_do(serve: Serve, tmp_path: Path, open_page: OpenPage) -> None:
    """Before the first run, the page shows the queries and the command that starts them."""
    empty_project(tmp_path)
    page = open_page(serve(tmp_path))
    expect(page.get_by_role("heading", name="Nothing has run yet")).to_be_visible()
    expect(page.locator(".empty")).to_contain_text("sqlstream run")
    expect(page.locator(".rows .row")).not_to_have_count(0)
    page.get_by_role("button", name="Runs: no run yet").click()
    expect(page.get_by_role("dialog", name="Runs")).to_contain_text("No run has reported")


def test_a_broken_project_shows_its_problems(serve: Serve, tmp_path: Path, open_page: OpenPage) -> None:
    """The errors of a project that does not compile are on the page."""
    empty_project(tmp_path)
    (tmp_path / "models" / "orders" / "wrong.sql").write_text("select * from {{ ref('missing') }}\n")
    page = open_page(serve(tmp_path))
    expect(page.locator("main")).to_contain_text("missing")
    expect(page.locator("main")).to_contain_text("models/orders/wrong.sql")


def test_the_page_says_when_it_is_disconnected(tmp_path: Path, browser: Browser) -> None:
    """Without the server, the page keeps its values and says since when; it connects again by itself."""
    empty_project(tmp_path)
    port = free_port()
    context = browser.new_context()
    page = context.new_page()
    with page_of(tmp_path, port) as url:
        page.goto(url)
        expect(page.locator(".connection")).to_have_text("Live")
    expect(page.locator(".connection")).to_contain_text("Disconnected since")
    expect(page.locator(".rows .row")).to_have_count(3)
    with page_of(tmp_path, port):
        expect(page.locator(".connection")).to_have_text("Live")
    context.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_overview_is_accessible(
    served: Served, open_page: OpenPage, violations: Callable[[Page], list[str]], theme: str
) -> None:
    """The overview violates no rule of WCAG A and AA in both themes, also on a phone, where it is not too wide."""
    page = open_page(served.url, theme=theme)
    page.get_by_role("button", name="Show the graph").click()
    expect(page.locator(".graph .node").first).to_be_visible()
    assert violations(page) == []
    for width in (1241, 1280, 1440, 1520):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.set_viewport_size({"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations(page) == []
