"""What the page says about queries that are slow, wait, stand still or were killed, in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.make_history import iso, name_of
from sqlstream.report.run_json import event_fields, event_name
from sqlstream.state.runs.events import AlertChanged
from tests.support.browsing import OpenPage
from tests.support.ui_project import NO_INPUT, Served, begin_batch, served_project


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path) as found:
        yield found


def status(page: Page, number: int) -> Locator:
    """Returns a locator of the status of a query in the table."""
    return page.locator(f".row[data-model='{name_of(number)}'] .c-status")


def test_a_first_batch_says_that_it_runs(served: Served, open_page: OpenPage) -> None:
    """While the first batch runs, the page says for how long and what waits, and not that no rows have arrived."""
    served.run.begin_query(1, silence=NO_INPUT)
    page = open_page(served.url)
    expect(status(page, 1)).to_have_text("No output")

    begin_batch(served.folder, 1, seconds=40, files=5)

    expect(status(page, 1)).to_have_text("Running")
    page.goto(f"{served.url}#/query/{name_of(1)}")
    expect(page.locator(".tile-fresh")).to_contain_text("first batch running for ")
    running = page.get_by_role("region", name="Running batch")
    expect(running).to_contain_text(re.compile(r"First batch running for .*, 5 files not committed yet\."))
    expect(page.get_by_text("no rows have arrived")).to_have_count(0)


def test_a_window_that_is_open_is_no_problem(served: Served, open_page: OpenPage) -> None:
    """While the newest events advance, the page says when the next rows are due. If they stand still, it is a problem."""
    now = time.time()
    silence = {"cause": "watermark", "text": "the first window ends at 12:10", "due_event": iso(now + 300)}
    served.run.changed_batch(8, {"rows_out": 0}, silence=silence, newest_event=iso(now), newest_event_at=iso(now))
    page = open_page(f"{served.url}#/query/{name_of(8)}")

    expect(page.get_by_role("region", name="Next rows")).to_contain_text("The next rows are due at about")
    expect(page.locator(".query-title")).to_contain_text("Running")

    served.run.changed_batch(
        8, {"rows_out": 0}, silence=silence, newest_event=iso(now - 900), newest_event_at=iso(now - 900_000)
    )
    expect(page.locator(".query-title")).to_contain_text("No output")
    expect(page.get_by_role("region", name="Why there is no output")).to_contain_text("the first window ends at 12:10")


def test_the_table_follows_the_clock(served: Served, open_page: OpenPage) -> None:
    """A query whose newest events stop to advance becomes a problem without an update, in the table as in the counts."""
    silence = {"cause": "watermark", "text": "the first window ends at 12:10", "due_event": iso(time.time() + 300)}
    at = iso(time.time())
    served.run.changed_batch(8, {"rows_out": 0}, silence=silence, newest_event=at, newest_event_at=at)
    page = open_page(served.url)
    expect(status(page, 8)).to_have_text("Running")
    expect(page.get_by_role("button", name="1 no output")).to_be_visible()

    page.evaluate("() => { const now = Date.now; Date.now = () => now() + 7_200_000; }")

    expect(status(page, 8)).to_have_text("No output")
    expect(page.get_by_role("button", name="2 no output")).to_be_visible()
    expect(page.locator(f".row[data-model='{name_of(8)}']")).to_have_attribute("data-rank", "high")


def test_what_a_query_is_behind_is_measured_by_the_clock(served: Served, open_page: OpenPage) -> None:
    """The age of the newest event, and how far the watermark is behind the clock, grow while no batch ends."""
    event, watermark = iso(time.time() - 7_205), iso(time.time() - 7_805)
    served.run.changed_batch(0, {"watermark": watermark, "newest_event": event}, newest_event=event)
    page = open_page(served.url)

    row = page.locator(f".row[data-model='{name_of(0)}']")
    expect(row.locator(".c-fresh")).to_have_text("2 h")
    expect(row.locator(".c-behind")).to_have_text("2 h 10 min")
    expect(page.locator(".figures")).to_contain_text("Most behind2 h 10 min")
    page.goto(f"{served.url}#/query/{name_of(0)}")
    expect(page.locator(".tile-fresh")).to_contain_text("2 h")
    expect(page.locator(".tile-fresh")).to_contain_text(re.compile(r"last batch \d+ s ago"))
    before = page.locator(".tile-fresh .sub").inner_text()
    expect(page.locator(".tile-fresh .sub")).not_to_have_text(before)


def test_a_killed_run_is_one_problem(served: Served, open_page: OpenPage) -> None:
    """The queries of a killed run are one line: which run, when, which queries, and what to do."""
    served.run.kill("12345678-killed", (0, 1, 2, 4, 5))
    page = open_page(served.url)

    killed = page.locator(".problems li.killed")
    expect(killed).to_have_count(1)
    for width in (1241, 1280, 1440, 1520):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    expect(killed).to_contain_text("Run 12345678 was killed with ")
    expect(killed).to_contain_text(f"{name_of(0)}, {name_of(5)}, {name_of(1)}")
    expect(killed).to_contain_text("and 2 more; sqlstream run continues them. Its last event was at ")
    expect(page.locator(".problems")).to_contain_text("3 problems")


def test_an_alert_has_its_time_and_the_current_value(served: Served, open_page: OpenPage) -> None:
    """An alert has the value of now beside that of its beginning, and ends with its query."""
    since = iso(time.time() - 180)
    raised = AlertChanged(name_of(0), "state_rows_over", "raised", "has 43,117 rows", "id", since, 43_117, 40_000)
    state = {
        "operators": ["stateStoreSave"],
        "rows": 312_004,
        "updated_rows": 1,
        "removed_rows": 0,
        "memory_bytes": 1,
        "late_rows": 0,
    }
    served.run.event(event_name(raised), 0, event_fields(raised))
    served.run.changed_batch(0, {"state": state})
    page = open_page(served.url)

    problems = page.locator(".problems")
    expect(problems).to_contain_text("has 43,117 rows (now 312,004 rows)")
    expect(problems).to_contain_text(re.compile(r"Alert.*3 min( \d+ s)? ago"))
    link = problems.get_by_role("link", name=name_of(0))
    link.focus()
    before = problems.inner_text()
    page.wait_for_function("text => document.querySelector('.problems').innerText !== text", arg=before)
    expect(link).to_be_focused()
    page.goto(f"{served.url}#/query/{name_of(0)}")
    expect(page.get_by_role("region", name="Alert")).to_contain_text("now 312,004 rows")

    served.run.event("query_ended", 0, {}, status="stopped")
    expect(page.locator(".query-title")).to_contain_text("Stopped")
    expect(page.get_by_role("region", name="Alert")).to_have_count(0)


def test_a_query_that_has_ended_has_no_rates(served: Served, open_page: OpenPage) -> None:
    """A stopped query reads nothing now, and its freshness is not that of a running one."""
    served.run.event("query_ended", 0, {}, status="stopped")
    page = open_page(served.url)
    row = page.locator(f".row[data-model='{name_of(0)}']")

    expect(row.locator(".c-status")).to_have_text("Stopped")
    for column in ("fresh", "processed", "behind"):
        expect(row.locator(f".c-{column}")).to_have_text("–")
