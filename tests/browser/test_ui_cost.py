"""What the page of a query says about its time and its cost, in a real browser."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.make_history import iso, name_of
from tests.support.browsing import OpenPage
from tests.support.ui_project import Served, served_project

BUSY = {"latestOffset": 900, "getBatch": 100, "queryPlanning": 1_500, "addBatch": 3_500, "walCommit": 2_500}
"""The parts of a batch of 9 seconds, more than half of which is not for its rows."""

TASKS = {"core_ms": 7_000, "tasks": 20, "cores": 4}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """A generated project with its page."""
    with served_project(tmp_path) as found:
        yield found


def write_batches(
    served: Served, number: int, count: int, parts: dict[str, int], changes: dict[str, object], **figures: object
) -> None:
    """Writes batches of 9 seconds that begin every 10 seconds from now on, of a query that has started now."""
    first = time.time() + 1  # after those of the generated run
    for batch in range(count):
        line = {"started_at": iso(first + 10 * batch), "duration_ms": 9_000, "parts_ms": parts, **figures}
        served.run.changed_batch(number, line, **{"started_at": iso(first), "duration_seconds": 100.0, **changes})


def card(page: Page) -> Locator:
    """Returns the card about time and cost."""
    return page.get_by_role("region", name="Where the time goes, and what it costs")


def test_the_page_says_where_the_time_goes_and_what_would_help(
    served: Served, open_page: OpenPage, violations: Callable[[Page], list[str]]
) -> None:
    """The parts and the waiting add up to the time; the advice names the setting; the card follows new batches."""
    page = open_page(f"{served.url}#/query/{name_of(0)}")
    shown = card(page)
    expect(shown).to_be_visible()
    expect(shown.locator(".advice")).to_be_hidden()

    write_batches(served, 0, 10, BUSY, {}, **TASKS)

    expect(shown.locator(".time-parts li")).to_have_text(
        [
            "Finding input10 %",
            re.compile(
                r"^Reading, computing and writing35 % \(2\.0 of 4 cores, [23] % of its tasks' time writes state\)$"
            ),
            "Planning15 %",
            "Committing25 %",
            "Other5 %",
            "Waiting9 %",
        ]
    )
    expect(shown.locator(".advice code")).to_have_text("trigger")
    expect(shown.locator(".advice")).to_contain_text("if later results are fine: 56 % of each batch is finding input")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        for width in (390, 1_280, 1_440):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert violations(page) == []


def test_the_page_says_what_a_query_costs(served: Served, open_page: OpenPage) -> None:
    """Core seconds per hour and per million rows, and the share of the run, from the figures of all its queries."""
    for number in range(16):
        served.run.changed_batch(number, {}, core_ms=0)
    served.run.changed_batch(1, {}, core_ms=30_000)
    served.run.changed_batch(2, {}, core_ms=90_000, duration_seconds=180.0, rows_in=2_000_000)

    page = open_page(f"{served.url}#/query/{name_of(2)}")

    expect(card(page).locator(".cost")).to_have_text("Cost1,800 core sper hour45 core sper million rows75 %of the run")
    expect(card(page).locator(".cost")).to_have_attribute("title", re.compile(r"^90 core seconds in .* tasks since"))


def test_what_is_unknown_is_not_shown_as_zero(served: Served, open_page: OpenPage) -> None:
    """Runs of earlier versions have no core time, and a batch model has no parts."""
    served.run.changed_batch(4, {"core_ms": None, "tasks": None, "cores": None}, core_ms=None, tasks=None)
    page = open_page(f"{served.url}#/query/{name_of(4)}")
    expect(card(page).locator(".time-use")).to_be_visible()
    expect(card(page).locator(".cost")).to_be_hidden()

    write_batches(served, 5, 1, {"triggerExecution": 9_000}, {"core_ms": None}, core_ms=None)
    page.goto(f"{served.url}#/query/{name_of(5)}")
    expect(page.locator(".tile-batch")).to_contain_text("9.00 s")
    expect(page.locator(".cost-card")).to_be_hidden()


def test_a_share_needs_all_queries_of_the_run(served: Served, open_page: OpenPage) -> None:
    """A share is unknown as long as the core time of another query of the run is unknown, and rows of 0 have no price."""
    served.run.changed_batch(2, {}, core_ms=5, rows_in=0)
    served.run.changed_batch(1, {}, core_ms=None)
    page = open_page(f"{served.url}#/query/{name_of(2)}", theme="dark", width=390)

    expect(card(page).locator(".cost dd")).to_have_text(["0.01 core s", "–", "–"])
