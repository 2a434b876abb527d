"""What the page says when there is nothing to show, in a real browser, on generated runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.make_history import name_of
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.observe.record import journal_files
from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.app.ui.serve import serving
from sqlstream.history.store import History
from tests.support.browsing import LONGEST_WAIT, OpenPage
from tests.support.ui_project import Served, empty_project, free_port, generated, page_of, served_project

LOOKS = [(1280, "light"), (1440, "dark"), (390, "light"), (390, "dark")]

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path_factory.mktemp("states")) as found:
        yield found


@pytest.fixture
def open_any(browser: Browser) -> Iterator[Open]:
    """Opens pages that may log errors: a refused request is one."""
    contexts = []

    def open_(url: str, width: int = 1280, theme: str = "light", zone: str = "America/New_York") -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 844},
            color_scheme=theme,  # type: ignore[arg-type]
            timezone_id=zone,
        )
        contexts.append(context)
        context.set_default_timeout(LONGEST_WAIT)
        page = context.new_page()
        page.goto(url)
        return page

    yield open_
    for context in contexts:
        context.close()


def fits(page: Page) -> bool:
    """Returns whether the page is not wider than its window."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_an_unknown_target_names_the_others(
    served: Served, open_any: Open, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """A target that does not exist has links to those that do."""
    page = open_any(f"{served.url}#/?target=nope", width, theme)

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("There is no target `nope`")
    expect(page.locator(".connection")).to_have_text("Not connected")
    assert fits(page)
    assert violations(page) == []
    alert.get_by_role("link", name="local", exact=True).click()
    expect(page.locator(".rows .row").first).to_be_visible()
    expect(page.locator(".connection")).to_have_text("Live")


@pytest.mark.parametrize("target", ["it's", "ÄÖ 日本", "<b>x</b>", "a&b=c#d", "`x`"])
@pytest.mark.parametrize("view", ["", "query/orders_000"])
def test_an_odd_target_is_shown_as_text(served: Served, open_any: Open, view: str, target: str) -> None:
    """Names with quotes, spaces, letters of other scripts or markup are text, also on the page of a query."""
    page = open_any(served.url)
    page.evaluate(f"target => {{ location.hash = '#/{view}?target=' + encodeURIComponent(target); }}", target)

    expect(page.get_by_role("alert")).to_contain_text(f"There is no target `{target}`")
    expect(page.get_by_role("alert").get_by_role("link", name="prod", exact=True)).to_be_visible()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_an_empty_target_has_the_command_that_starts_it(
    served: Served, open_page: OpenPage, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """A target in which nothing has run says how to start it, and which targets have runs."""
    page = open_page(f"{served.url}#/?target=prod", width=width, theme=theme)

    card = page.locator(".card.empty")
    expect(card).to_contain_text("Nothing has run yet with target prod")
    expect(card.locator(".command-line code")).to_have_text("sqlstream run --target prod")
    assert fits(page)
    assert violations(page) == []
    card.get_by_role("link", name="local").click()
    expect(page.locator(".problems")).to_be_visible()
    expect(page.locator(".card.empty")).to_be_hidden()


def test_a_query_that_has_not_run_says_so(served: Served, open_page: OpenPage) -> None:
    """With a target in which a query has not run, its tab Output says why there are no rows."""
    page = open_page(f"{served.url}#/query/orders_000/output?target=prod")
    expect(page.get_by_role("region", name="Why is there no output?")).to_contain_text("has not run yet")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_an_unknown_query_has_suggestions(
    served: Served, open_any: Open, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """A query that does not exist has links to similar ones."""
    page = open_any(f"{served.url}#/query/order_000", width, theme)

    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("There is no query `order_000`")
    assert fits(page)
    assert violations(page) == []
    alert.get_by_role("link", name="orders_000").click()
    expect(page.locator("h1")).to_have_text("orders_000")


def test_a_removed_query_shows_its_last_run(tmp_path: Path, open_any: Open) -> None:
    """A query whose model is gone shows what it has done, says so, and suggests similar ones."""
    run = generated(tmp_path)
    (tmp_path / "models/orders/orders_000.sql").unlink()
    with page_of(tmp_path) as url:
        page = open_any(f"{url}#/query/orders_000")
        notice = page.get_by_role("region", name="This query is no longer in the project")
        expect(notice).to_contain_text("removed, renamed or disabled")
        expect(page.locator(".query-title")).to_contain_text("Running")
        expect(page.locator(".tile-input")).to_contain_text("in this run")
        for tab in ("sql", "columns", "output", "checks", "history", "batches"):
            page.evaluate("tab => { location.hash = `#/query/orders_000/${tab}`; }", tab)
            expect(page.locator(".tabs a[aria-current=page]")).to_have_attribute("href", re.compile(tab))
            expect(page.locator(".tab-body .card, .tab-body table").first).to_be_visible()
        notice.get_by_role("link", name="orders_005").click()
        expect(page.locator("h1")).to_have_text("orders_005")
        expect(page.get_by_role("region", name="This query is no longer in the project")).to_have_count(0)
    run.end()


@pytest.mark.parametrize(("width", "theme"), [(1440, "light"), (390, "dark")])
def test_a_project_that_never_compiled(
    tmp_path: Path, open_any: Open, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """Its errors are shown; when they are fixed, the page says how to start its queries."""
    empty_project(tmp_path)
    wrong = tmp_path / "models/orders/wrong one.sql"
    wrong.write_text("select * from {{ ref('missing') }}\n")
    with page_of(tmp_path) as url:
        page = open_any(url, width, theme)
        expect(page.locator(".card.empty")).to_contain_text("The project does not compile")
        expect(page.locator(".card.empty .command-line code")).to_have_text("sqlstream compile")
        expect(page.locator(".problems")).to_contain_text("wrong one.sql")
        assert fits(page)
        assert violations(page) == []
        wrong.unlink()
        expect(page.locator(".card.empty")).to_contain_text("Nothing has run yet with target local")
        expect(page.locator(".problems")).to_be_hidden()


def test_a_project_without_queries(tmp_path: Path, open_any: Open) -> None:
    """Without a model that names a sink, the page says what is missing."""
    empty_project(tmp_path)
    for model in tmp_path.glob("models/*/*_0*.sql"):
        model.unlink()
    sources = tmp_path / "sources.yml"
    text = sources.read_text().replace("on_corrupt: quarantine", "").replace("quarantine_sink: corrupt", "")
    sources.write_text(text)
    with page_of(tmp_path) as url:
        expect(open_any(url).locator(".card.empty")).to_contain_text("This project has no queries yet")


def test_figures_have_a_beginning(served: Served, open_page: OpenPage) -> None:
    """The overview says since when it has figures, and nothing of missing ones if there are none."""
    page = open_page(served.url)
    expect(page.locator(".history-note")).to_have_text(re.compile(r"^Figures since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.$"))


def test_a_damaged_history_says_where_earlier_figures_are(tmp_path: Path, open_any: Open) -> None:
    """After a damaged history was renamed, the page names the file, also when the server starts again."""
    run = generated(tmp_path)
    for file in (tmp_path / "logs").glob("history.sqlite*"):
        file.write_bytes(b"no database" * 1000)
    for _ in range(2):
        with page_of(tmp_path) as url:
            note = open_any(url).locator(".history-note")
            expect(note).to_contain_text(re.compile(r"Earlier ones are in logs/history\.sqlite\.\d{4}-"))
            expect(note).to_contain_text(re.compile(r"and was renamed on \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\."))
    run.end()


def test_a_deleted_history_says_that_batches_are_missing(tmp_path: Path, open_any: Open) -> None:
    """After the history was deleted, the page says that there were batches before its figures."""
    run = generated(tmp_path)
    for file in (tmp_path / "logs").glob("history.sqlite*"):
        file.unlink()
    with page_of(tmp_path) as url:
        expect(open_any(url).locator(".history-note")).to_contain_text("There were batches before")
    run.end()


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_a_lost_server_says_what_to_check(
    tmp_path: Path, open_any: Open, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """In each view, a notice says since when values are old and how to start the server; the page connects again."""
    run, port = generated(tmp_path), free_port()
    with page_of(tmp_path, port) as url:
        overview = open_any(url, width, theme)
        query = open_any(f"{url}#/query/{name_of(3)}", width, theme)
        for page in (overview, query):
            expect(page.locator(".connection")).to_have_text("Live")
            expect(page.locator(".offline")).to_be_hidden()
        expect(overview.locator(".rows .row").first).to_be_visible()
        expect(query.locator(".failure .command-line").first).to_be_visible()
    for page in (overview, query):
        notice = page.get_by_role("region", name="Connection")
        expect(notice).to_contain_text(
            re.compile(r"Since \d\d:\d\d:\d\d \(\d.*\)\. All values on this page are from then")
        )
        expect(notice.locator(".command-line code")).to_have_text(f"sqlstream ui --port {port}")
        assert page.evaluate("getComputedStyle(document.querySelector('main > .card, main > .alarm')).filter") != "none"
        assert fits(page)
        assert violations(page) == []
    query.get_by_role("link", name="Batches").click()
    expect(query.get_by_role("region", name="Connection")).to_be_in_viewport()
    with page_of(tmp_path, port):
        overview.get_by_role("button", name="Try now").click()
        for page in (overview, query):
            expect(page.locator(".connection")).to_have_text("Live")
            expect(page.locator(".offline")).to_be_hidden()
    run.end()


def test_the_page_of_a_run_ends_with_it(tmp_path: Path, open_any: Open) -> None:
    """If a run has served the page, the notice says how to see what the run has left."""
    run, logs = generated(tmp_path), tmp_path / LOGS_FOLDER
    history = History(logs, journal_files(logs))
    with serving(listen(UiRequest(port=free_port())), ProjectRequest(tmp_path), history) as url:
        page = open_any(url)
        expect(page.locator(".connection")).to_have_text("Live")
        expect(page.locator(".bar .brand")).to_contain_text("observed")
    history.close()
    expect(page.locator(".offline")).to_contain_text("which ends with the run")
    expect(page.locator(".offline .command-line code")).to_contain_text("sqlstream ui --port")
    run.end()


def test_a_silent_server_is_lost(served: Served, open_any: Open) -> None:
    """A connection without a message for 45 seconds counts as lost, although the browser has not noticed it."""
    page = open_any(served.url)
    expect(page.locator(".connection")).to_have_text("Live")
    page.route("**/api/**", lambda route: route.abort())

    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 46_000; }")

    expect(page.locator(".offline")).to_contain_text("The server does not answer")
    page.unroute("**/api/**")
    expect(page.locator(".connection")).to_have_text("Live")


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_a_new_token_is_asked_for(
    tmp_path: Path, open_any: Open, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """After a restart of the server with another token, the page shows a form, and goes on where it was."""
    run, port = generated(tmp_path), free_port()
    with page_of(tmp_path, port, token="the first") as url:
        page = open_any(f"{url.replace(' ', '%20')}#/query/{name_of(3)}/sql?line=4", width, theme)
        expect(page.locator(".line.marked")).to_be_visible()
        expect(page.locator(".connection")).to_have_text("Live")
    with page_of(tmp_path, port, token="it's & the second"):
        expect(page.locator(".offline")).to_contain_text("This page needs a new token")
        expect(page.locator(".connection")).not_to_contain_text("Disconnected")
        expect(page.locator(".tile-batch")).to_be_visible()
        assert fits(page)
        assert violations(page) == []
        page.get_by_label("Token").fill("it's & the second")
        page.get_by_role("button", name="Open").click()
        expect(page.locator(".line.marked")).to_be_visible()
        expect(page.locator(".connection")).to_have_text("Live")
        assert page.url.endswith(f"/#/query/{name_of(3)}/sql?line=4")
    run.end()


def test_a_wrong_token_is_asked_for_again(tmp_path: Path, open_any: Open) -> None:
    """A wrong token leads to the server's form, which keeps the address."""
    empty_project(tmp_path)
    port = free_port()
    with page_of(tmp_path, port, token="first") as url:
        page = open_any(f"{url}#/?q=orders")
        expect(page.locator(".connection")).to_have_text("Live")
    with page_of(tmp_path, port, token="second"):
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Open").click()
        expect(page.get_by_role("heading", name="This page needs its token")).to_be_visible()
        page.get_by_label("Token").fill("second")
        page.get_by_role("button", name="Open").click()
        expect(page.locator("#filter")).to_have_value("orders")
