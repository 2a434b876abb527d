"""A run as a table that is redrawn in place."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path

from sqlstream.report.live_table import LiveReporter
from sqlstream.report.run_text import Counts
from sqlstream.state.runs.events import (
    Notice,
    QueriesSelected,
    QueryRestarting,
    QuerySilent,
    QueryStarted,
    RunEvent,
    SelectedQuery,
)
from sqlstream.state.runs.silence import Cause, Silence
from tests.support.run_events import BATCH, BIG, FAILURE

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
CHOSEN = QueriesSelected(
    (SelectedQuery("big", "model.shop.big", "lake", "parquet", "append", "once", ("shop.orders",)),)
)
STARTED = QueryStarted("big", 1, 1, "lake", "once")
SILENT = QuerySilent("big", Silence(Cause.FILTERED, "conditions let no row pass"), True)


def screen(*events: RunEvent, width: int = 150) -> tuple[str, LiveReporter]:
    """Returns everything that was drawn for `events`, without colours and cursor movements, and the reporter."""
    file = StringIO()
    reporter = LiveReporter(file, width)
    for event in events:
        reporter(event)
    reporter.close()
    return CONTROL.sub("", file.getvalue()), reporter


def last_table(text: str) -> list[str]:
    """Returns the final table and the text below it."""
    return ("query " + text.rsplit("query ", 1)[1]).splitlines()


def test_the_final_table_has_all_figures() -> None:
    """The final table stays with all figures; batches appear only in the table, starts and ends also as lines."""
    text, reporter = screen(CHOSEN, STARTED, BATCH, BIG)

    assert "START stream big -> lake" in text
    assert "OK stream big" in text
    assert "batch 0:" not in text
    row = last_table(text)[2].split()
    assert row[:4] == ["big", "success", "0", "1,234"]
    summary = reporter.summary((BIG,), Counts(), Path("/project"))
    assert summary == "\nbig -> .sqlstream/local/big\n\nDone. PASS=1 WARN=0 ERROR=0 SKIP=0 TOTAL=1"


def test_a_bug_in_the_table_leaves_the_lines() -> None:
    """If the table cannot be drawn, the lines of events still appear: rich draws the table at each of them."""
    _, reporter = screen(CHOSEN)
    reporter._run = replace(reporter._run, queries={"big": replace(reporter._run.queries["big"], figures=None)})  # type: ignore[arg-type]
    reporter(STARTED)
    reporter(Notice("it goes on"))
    reporter.close()

    text = reporter._console.file.getvalue()  # type: ignore[attr-defined]
    assert "it goes on" in text
    assert "the table cannot be shown: AttributeError" in text


def test_the_reason_for_missing_rows_is_below_the_table() -> None:
    """The reason why a running query emits no rows is below the table, and is not repeated as lines."""
    text, _ = screen(CHOSEN, STARTED, BATCH, replace(BATCH, rows_out=0), SILENT)

    assert last_table(text)[-1] == "big emits no rows: conditions let no row pass"
    assert not re.search(r"\d\d:\d\d:\d\d  big emits no rows", text)


def test_failures_and_notices_are_lines_above_the_table() -> None:
    """Failures and notices are lines above the live table, and stay when the table is redrawn."""
    text, _ = screen(CHOSEN, STARTED, QueryRestarting("big", 1, 3, 1.3, FAILURE), Notice("something"))

    assert "big failed and restarts in 1.30 s, attempt 1 of 3" in text
    assert "fix: make room" in text
    assert "something" in text
    assert last_table(text)[2].split()[:2] == ["big", "restarting"]


def test_a_narrow_terminal_omits_columns() -> None:
    """In a narrow terminal columns are left out instead of wrapped; text below the table is wrapped."""
    text, _ = screen(CHOSEN, STARTED, BATCH, replace(BATCH, rows_out=0), SILENT, width=30)

    assert max(map(len, last_table(text))) <= 30
    assert last_table(text)[0].split() == ["query", "status", "rows", "in"]


def test_a_console_sink_has_the_terminal_to_itself() -> None:
    """A console sink uses the terminal itself, so the run prints lines and a final table instead of a live table."""
    chosen = QueriesSelected((replace(CHOSEN.queries[0], format="console"),))
    text, reporter = screen(chosen, STARTED, BATCH, BIG)

    assert "big batch 0: 1,234 rows in" in text
    assert "query " not in text
    assert reporter.summary((BIG,), Counts(), Path("/project")) is None


def test_nothing_is_drawn_before_the_first_query_starts() -> None:
    """Nothing is drawn before the first query starts, so a refused run leaves no table."""
    text, _ = screen(CHOSEN)

    assert text == ""
