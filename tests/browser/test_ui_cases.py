"""A project in which everything goes wrong at once, in windows of three widths and in both themes: what the page says of
each query, and that it says nothing else.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.make_history import FAILED, SILENT, iso, name_of
from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.app.ui.serve import serving
from sqlstream.report.run_json import event_fields, event_name
from sqlstream.state.runs.events import AlertChanged
from tests.support.browsing import OpenPage
from tests.support.ui_project import NO_INPUT, Served, begin_batch, served_project

FIRST, STALLED, WINDOW, GROWING, KILLED = 1, 4, 8, 0, (5, 6, 9, 10)
LOOKS = [(width, theme) for width in (390, 1280, 1440) for theme in ("light", "dark")]
OVERFLOW = "() => document.documentElement.scrollWidth - innerWidth"

Violations = Callable[[Page], list[str]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A project with a first batch that runs, a watermark that stands still, a window that is open, a state that grows,
    a query that has failed, and a run that was killed.
    """
    with served_project(tmp_path_factory.mktemp("cases")) as found:
        run, now = found.run, time.time()
        run.kill("12345678-killed", KILLED)
        run.begin_query(FIRST, silence=NO_INPUT)
        begin_batch(found.folder, FIRST, seconds=40, files=509)
        silence = {"cause": "watermark", "text": "the first window ends at 2099-01-01 12:10:00 UTC"}
        advancing = {"newest_event": iso(now), "newest_event_at": iso(now + 7_200)}
        run.changed_batch(WINDOW, {"rows_out": 0}, silence={**silence, "due_event": iso(now + 600)}, **advancing)
        old = {"newest_event": iso(now - 90_000), "newest_event_at": iso(now - 80_000)}
        run.changed_batch(STALLED, {"rows_out": 0}, silence={**silence, "due_event": iso(now - 89_000)}, **old)
        run.event(*alert(GROWING, "state_rows_over", "has 43,117 rows", now - 180, 43_117, 40_000))
        state = {"operators": [], "rows": 312_004, "updated_rows": 1, "removed_rows": 0, "memory_bytes": 1}
        run.changed_batch(GROWING, {"state": {**state, "late_rows": 0}})
        yield found


def alert(
    number: int, kind: str, text: str, since: float, value: float, limit: float
) -> tuple[str, int, dict[str, Any]]:
    """Returns the arguments of an event that raises an alert."""
    raised = AlertChanged(name_of(number), kind, "raised", text, f"{kind} {number}", iso(since), value, limit)
    return event_name(raised), number, event_fields(raised)


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_the_overview_names_each_problem_once(
    served: Served, open_page: OpenPage, violations: Violations, width: int, theme: str
) -> None:
    """Failures come first. A first batch and an open window are no problems, and a killed run is one."""
    page = open_page(served.url, width=width, theme=theme)

    words = {
        FAILED: "Failed",
        STALLED: "No output",
        SILENT: "No output",
        GROWING: "Alert",
        FIRST: "Running",
        WINDOW: "Running",
    }
    for number, word in {**words, **dict.fromkeys(KILLED, "Killed")}.items():
        expect(page.locator(f".row[data-model='{name_of(number)}'] .c-status")).to_have_text(word)
    problems = page.locator(".problems li")
    texts = problems.all_inner_texts()
    assert name_of(FAILED) in texts[0]
    assert "Run 12345678 was killed" in texts[1]
    assert sum(name_of(STALLED) in text for text in texts) == 1
    for number in (FIRST, WINDOW):
        assert not any(name_of(number) in text for text in texts)
    expect(page.locator(".problems")).to_contain_text("has 43,117 rows (now 312,004 rows)")
    expect(page.get_by_text("no rows have arrived")).to_have_count(0)
    assert page.evaluate(OVERFLOW) <= 0
    assert violations(page) == []


@pytest.mark.parametrize(("width", "theme"), LOOKS)
def test_each_query_says_what_is_wrong(
    served: Served, open_page: OpenPage, violations: Violations, width: int, theme: str
) -> None:
    """The first card says what happens now, and no other card contradicts it."""
    page = open_page(served.url, width=width, theme=theme)
    expected = {
        FIRST: ("Running", r"First batch running for .*, 509 files not committed yet\."),
        STALLED: ("No output", r"Why there is no output"),
        WINDOW: ("Running", r"The next rows are due (at about|when an event of) "),
        GROWING: ("Alert", r"state_rows_over.*has 43,117 rows.*now 312,004 rows"),
        FAILED: ("Failed", r"failed"),
        KILLED[0]: ("Killed", r""),
    }
    for number, (state, text) in expected.items():
        page.goto(f"{served.url}#/query/{name_of(number)}")
        expect(page.locator(".query-title")).to_contain_text(name_of(number))
        expect(page.locator(".query-title .badge")).to_have_text(state)
        if text:
            expect(page.locator(".alarm > *").first).to_contain_text(re.compile(text, re.DOTALL | re.IGNORECASE))
        if state == "Running":
            expect(page.get_by_text("Why there is no output")).to_have_count(0)
            expect(page.get_by_text("no rows have arrived")).to_have_count(0)
        assert page.evaluate(OVERFLOW) <= 0, (number, width)
    page.wait_for_function(
        "() => document.querySelector('.timeline:not([aria-busy])') && !document.querySelector('.loading')"
    )
    assert violations(page) == []


def test_times_are_those_of_new_york(served: Served, browser: Browser) -> None:
    """All times are local, also those in reasons; the time in UTC is in the tooltip."""
    context = browser.new_context(timezone_id="America/New_York")
    page = context.new_page()
    page.goto(f"{served.url}#/query/{name_of(STALLED)}")
    reason = page.get_by_role("region", name="Why there is no output")
    expect(reason).to_contain_text("the first window ends at 2099-01-01 07:10:00")
    expect(reason).not_to_contain_text("UTC")
    expect(page.locator(".connection")).to_have_attribute("title", re.compile("America/New_York"))
    context.close()


def test_a_link_in_a_message_opens_the_page(served: Served, browser: Browser) -> None:
    """A browser that has the cookie opens a link from another site; one without it gets a form, and comes to the page
    of the link with the token.
    """
    context = browser.new_context()
    listening = listen(UiRequest(port=0, token="a long enough secret"))
    with serving(listening, ProjectRequest(served.folder)) as url:
        base = url.split("?")[0]
        page = context.new_page()
        link = f"{base}#/query/{name_of(FAILED)}"
        mail = f"data:text/html,<a href='{link.replace('#', '%23')}'>open</a>"
        page.goto(mail)
        page.get_by_role("link").click()
        page.get_by_label("Token").fill("a long enough secret")
        page.get_by_role("button").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name_of(FAILED))

        page.goto(mail)
        page.get_by_role("link").click()
        expect(page.get_by_role("heading", level=1)).to_have_text(name_of(FAILED))
        context.close()
