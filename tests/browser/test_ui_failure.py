"""The card about the failure of a query, in a real browser, on generated runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.make_history import error_of, iso, name_of
from tests.support.browsing import LONGEST_WAIT, OpenPage
from tests.support.ui_project import Served, served_project

FAILED, RESTARTED, STATEFUL = 3, 11, 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path_factory.mktemp("failure")) as found:
        yield found


def card(page: Page) -> Locator:
    """Returns the card of a query that has failed for good."""
    return page.get_by_role("region", name="Why it failed")


def fail(served: Served, number: int, *, end: bool = True, **changes: Any) -> None:
    """Writes the failure of a query, whose finding has `changes`: for good, or until its restart."""
    finding = {**error_of(number), **changes}
    at = iso(time.time() - 75)
    if end:
        changed = {"status": "error", "error": finding, "last_failure": finding, "failed_at": at}
        served.run.event("query_ended", number, {"status": "error", "error": finding}, **changed)
        return
    retry = {"attempt": 2, "attempts": 5, "at": iso(time.time() + 100)}
    restarting = {"attempt": 2, "attempts": 5, "delay_seconds": 100.0, "finding": finding}
    changed = {"status": "restarting", "last_failure": finding, "failed_at": at, "retry": retry}
    served.run.event("query_restarting", number, restarting, **changed)


def test_the_card_says_what_to_do(served: Served, open_page: OpenPage) -> None:
    """It has the time, the batch, the row and its file, the line of SQL, what a run reads, and commands."""
    page = open_page(f"{served.url}#/query/{name_of(FAILED)}")

    box = card(page)
    expect(box.locator("h2")).to_contain_text(f"The query of {name_of(FAILED)} failed in batch 41")
    expect(box.locator(".when")).to_contain_text(re.compile(r"\d\d:\d\d:\d\d · 12 min( \d+ s)? ago"))
    for text in ("'n/a'", '"amount": "n/a"', "/data/clicks/2024-03-04 12.json", "cast(amount as double)", "try_cast"):
        expect(box).to_contain_text(text)
    expect(box).to_contain_text("A run reads batch 41 again, from the same offsets.")
    expect(box.locator(".command-line code")).to_have_text(
        [f"sqlstream replay {name_of(FAILED)} --batch 41", f"sqlstream run --select {name_of(FAILED)}"]
    )


def test_times_are_local(served: Served, browser: Browser) -> None:
    """In New York, the time of the failure is New York's, with UTC on hover."""
    context = browser.new_context(timezone_id="America/New_York")
    context.set_default_timeout(LONGEST_WAIT)
    page = context.new_page()
    page.goto(f"{served.url}#/query/{name_of(FAILED)}")
    shown = card(page).locator(".when time")

    at = page.evaluate("at => new Date(at).toLocaleTimeString('en-GB')", shown.get_attribute("datetime"))
    expect(shown).to_contain_text(at)
    expect(shown).to_have_attribute("title", re.compile(r"UTC$"))
    context.close()


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1440, "dark"), (390, "dark"), (390, "light")])
def test_the_line_is_marked_in_the_sql(served: Served, open_page: OpenPage, width: int, theme: str) -> None:
    """The place of the failure is a link to its line, which is marked and in view."""
    page = open_page(f"{served.url}#/query/{name_of(FAILED)}", width=width, theme=theme)

    card(page).get_by_role("link", name=f"models/clicks/{name_of(FAILED)}.sql:4:7").click()

    marked = page.locator(".line.marked")
    expect(marked).to_have_count(1)
    expect(marked).to_have_text(f"where amount > {FAILED}")
    expect(marked).to_be_in_viewport()
    expect(page.get_by_role("link", name="SQL", exact=True)).to_have_attribute("aria-current", "page")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_line_of_a_view_is_on_its_page(served: Served, open_page: OpenPage) -> None:
    """If the SQL of a view failed, its place is a link to the line on the page of the view."""
    fail(served, RESTARTED)
    page = open_page(f"{served.url}#/query/{name_of(RESTARTED)}")

    card(page).get_by_role("link", name="models/payments/payments_clean.sql:1:18").click()

    expect(page.locator("h1")).to_have_text("payments_clean")
    marked = page.get_by_role("region", name="SQL as written", exact=True).locator(".line.marked")
    expect(marked).to_contain_text("cast(amount as double)")
    expect(marked).to_be_in_viewport()


@pytest.mark.parametrize("address", ["line=99", "line=x%22'", "line=2.5", "line=", "line=-1"])
def test_a_line_that_does_not_exist_is_not_marked(served: Served, open_page: OpenPage, address: str) -> None:
    """An address with another line or file shows the SQL without a mark."""
    page = open_page(f"{served.url}#/query/{name_of(FAILED)}/sql?{address}")

    expect(page.get_by_role("region", name="SQL as written", exact=True)).to_contain_text("where amount")
    expect(page.locator(".line.marked")).to_have_count(0)


def test_commands_are_copied(served: Served, browser: Browser) -> None:
    """Each command has a button that copies it."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    context.set_default_timeout(LONGEST_WAIT)
    page = context.new_page()
    page.goto(f"{served.url}#/query/{name_of(FAILED)}")
    line = card(page).locator(".command-line", has_text="replay")

    line.get_by_role("button", name="Copy").click()

    expect(line).to_contain_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()") == f"sqlstream replay {name_of(FAILED)} --batch 41"
    context.close()


COMMANDS = """async ([words, project]) => {
  const { commandText } = await import('/assets/ui/commands.js');
  return commandText(words, project);
}"""


@pytest.mark.parametrize(
    ("words", "project", "command"),
    [
        (["run", "--select", "a_1"], None, "sqlstream run --select a_1"),
        (["run"], {"target": "prod", "targets": ["dev", "prod"], "default_target": "prod"}, "sqlstream run"),
        (
            ["run"],
            {"target": "prod", "targets": ["dev", "prod"], "default_target": "dev"},
            "sqlstream run --target prod",
        ),
        (["run"], {"target": "dev", "targets": ["dev", "prod"], "default_target": None}, "sqlstream run --target dev"),
        (["run"], {"target": "dev", "targets": ["dev"], "default_target": None}, "sqlstream run"),
        (
            ["replay", "it's größer", "--batch", "0"],
            {"target": "a b", "targets": ["a b", "c"], "default_target": "c"},
            "sqlstream replay 'it'\\''s größer' --batch 0 --target 'a b'",
        ),
        (["state", "repair", ""], None, "sqlstream state repair ''"),
    ],
)
def test_words_are_quoted_for_a_shell(
    served: Served, open_page: OpenPage, words: list[str], project: dict[str, Any] | None, command: str
) -> None:
    """Names with other characters are in quotes, and `--target` is there if the target is not the default one."""
    page = open_page(served.url)
    assert page.evaluate(COMMANDS, [words, project]) == command


def test_a_restart_says_when_and_how_many_are_left(served: Served, open_page: OpenPage) -> None:
    """While a query waits for its restart, the card counts down to it; `run` is not among the commands."""
    fail(served, STATEFUL, end=False)
    page = open_page(f"{served.url}#/query/{name_of(STATEFUL)}")

    box = page.get_by_role("region", name="It failed and will restart")
    expect(box).to_contain_text(re.compile(r"Restart 2 of 5 begins at \d\d:\d\d:\d\d, in .* s; 3 more can follow\."))
    expect(box).to_contain_text("It reads batch 41 again, from the same offsets.")
    name = name_of(STATEFUL)
    expect(box.locator(".command-line code")).to_have_text(
        [f"sqlstream replay {name} --batch 41", f"sqlstream state show {name}"]
    )
    before = box.locator("dd", has_text="Restart 2 of 5").inner_text()
    expect(box.locator("dd", has_text="Restart 2 of 5")).not_to_have_text(before)


@pytest.mark.parametrize(
    ("changes", "texts"),
    [
        ({"code": "torn-checkpoint", "failure": None}, ("state repair", "continues where the checkpoint ends")),
        ({"code": "state-change"}, ("state history", "reads batch 41 again")),
        ({"failure": {"batch": 0, "position": "topic ö'\"<b>, partition 0, offset 7"}}, ("topic ö'\"<b>", "--batch 0")),
        ({"location": None, "why": "", "fix": ""}, ("reads batch 41 again",)),
        ({"location": {"path": "elsewhere.sql", "line": None, "column": None}}, ("elsewhere.sql",)),
    ],
)
def test_what_a_failure_lacks_is_left_out(
    served: Served, open_page: OpenPage, changes: dict[str, Any], texts: tuple[str, ...]
) -> None:
    """A failure without a batch, a place or a row shows what there is, and text is text."""
    fail(served, 5, **changes)
    page = open_page(f"{served.url}#/query/{name_of(5)}")

    for text in texts:
        expect(card(page)).to_contain_text(text)
    for nothing in ("undefined", "null", "NaN"):
        expect(card(page)).not_to_contain_text(nothing)


def test_the_output_does_not_repeat_the_failure(served: Served, open_page: OpenPage) -> None:
    """The tab Output of a failed query begins with what it emits; the failure is above the tabs, once."""
    page = open_page(f"{served.url}#/query/{name_of(FAILED)}/output")

    expect(card(page)).to_have_count(1)
    expect(page.get_by_role("region", name="Newest rows", exact=True)).to_be_visible()
    expect(page.get_by_role("region", name="Why is there no output?")).to_have_count(0)
    expect(page.locator(".tab-body .card").first).to_have_attribute("aria-label", "When it emits rows")


def test_a_silent_query_says_why_once(served: Served, open_page: OpenPage) -> None:
    """Why a query emits nothing is above the tabs, and not again in the tab Output."""
    page = open_page(f"{served.url}#/query/{name_of(7)}/output")

    expect(page.get_by_role("region", name="When it emits rows", exact=True)).to_be_visible()
    expect(page.get_by_text("the watermark has not reached the end of a window")).to_have_count(1)


def test_a_problem_of_the_overview_leads_to_the_card(served: Served, open_page: OpenPage) -> None:
    """The list of problems has the reason of a failure, and its name is a link to the card."""
    page = open_page(served.url)
    problem = page.locator(".problems li", has_text=name_of(FAILED))
    expect(problem).to_contain_text("cannot be cast to DOUBLE")

    problem.get_by_role("link").click()

    expect(card(page)).to_be_in_viewport()


BEYOND_THE_EDGE = """card => [...card.querySelectorAll('.command-line, dd')]
  .filter(line => line.getBoundingClientRect().right > card.getBoundingClientRect().right)
  .map(line => line.textContent)"""
"""The values and commands of the card that are wider than it, read at once: an update replaces the card."""


@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (1440, "dark"), (390, "light"), (390, "dark")])
def test_the_card_is_accessible(
    served: Served, open_page: OpenPage, violations: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    """The card and the marked line violate no rule of WCAG A and AA, and fit into the window, also with long values."""
    long = {"batch": 41, "file": f"/data/{'x' * 300}.json", "row": "y" * 900, "value": "z" * 300, "sql": "cast(a)"}
    fail(served, 9, failure=long)
    page = open_page(f"{served.url}#/query/{name_of(9)}/sql?line=4", width=width, theme=theme)
    expect(page.locator(".line.marked")).to_be_visible()
    expect(card(page)).to_contain_text("sqlstream replay")
    page.evaluate("scrollTo(0, 0)")  # what is partly below the bar is too small
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert card(page).evaluate(BEYOND_THE_EDGE) == []
