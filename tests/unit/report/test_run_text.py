"""A run as lines of text."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from sqlstream.report.run_text import Counts, TextReporter, batch_text, done_line, memory_text, summary_text
from sqlstream.state.runs.events import QueryRestarting, QueryStarted, RunEvent, Status, TableShown
from sqlstream.state.runs.progress import StateProgress
from tests.support.run_events import BATCH, BIG, EVENTS, FAILURE, LATE, POOR, RESULTS


def run_text(*events: RunEvent) -> str:
    """Returns the reporter's output for `events`, at five past twelve."""
    lines: list[str] = []
    reporter = TextReporter(lines.append, clock=lambda: datetime(2024, 1, 1, 12, 0, 5))
    for event in events:
        reporter(event)
    return "\n".join(lines)


def test_a_run_is_reported_line_by_line() -> None:
    """Start, batches, notices, ends with findings and memory tables each have a line with date and time."""
    assert run_text(*EVENTS) == (
        "2024-01-01 12:00:05  1 of 3 START stream big -> lake, trigger 10 seconds "
        ".................................... [RUN]\n2024-01-01 12:00:05  big batch 0: 1,234 rows in, - "
        "rows out, 0.84 s, watermark 2024-01-01T00:54:00.000Z\n2024-01-01 12:00:05  poor failed and "
        "restarts in 1.30 s, attempt 1 of 3\nmodels/poor.sql:3:2: [query-failed] the query of `poor` "
        "failed in batch 1\n  why: no disk\n  fix: make room\n2024-01-01 12:00:05  poor: restarts as "
        "version 2\n2024-01-01 12:00:05  1 of 3 OK stream big "
        "................................................................... [SUCCESS 2 batches in 3.20 "
        "s]\n2024-01-01 12:00:05  2 of 3 ERROR stream poor "
        "............................................................... [ERROR 1 batch in 2 min 05 s, 3 "
        "restarts]\nmodels/poor.sql:3:2: [query-failed] the query of `poor` failed in batch 1\n  why: no "
        "disk\n  fix: make room\n2024-01-01 12:00:05  3 of 3 SKIP stream late "
        "................................................................ [SKIP]\n\ntotals (30 rows, the "
        "first 2 shown; use --limit to show more)\nkind   total\n────────────\na      12\nb      8"
    )


def test_the_same_failure_is_printed_once_in_full() -> None:
    """A query that fails again with the same error gets one line for each restart, until the error is another one."""
    lines: list[str] = []
    notify = TextReporter(lines.append)
    other = replace(FAILURE, why="another reason")
    for model, finding in (("poor", FAILURE), ("poor", FAILURE), ("slow", FAILURE), ("poor", FAILURE), ("poor", other)):
        notify(QueryRestarting(model, 1, 3, 1.3, finding))

    assert ["with the same error" in line for line in lines] == [False, False, True, False, False, True, False, False]
    assert [line.count("\n") for line in lines] == [0, 2, 0, 0, 2, 0, 0, 2]


def test_an_interrupted_query_says_so() -> None:
    """An interrupted query's line says that its batch runs again next time."""
    assert run_text(replace(BIG, status=Status.INTERRUPTED)).endswith(" [INTERRUPTED 2 batches in 3.20 s]")


def test_a_long_name_is_not_cut() -> None:
    """A long name is not cut, and one space separates it from the status."""
    name = "x" * 100

    assert run_text(QueryStarted(name, 1, 1, "lake", "once")).endswith(f"{name} -> lake, trigger once [RUN]")


def test_a_batch_of_one_row_without_a_watermark() -> None:
    """A batch of one row uses the singular, and without a watermark none is mentioned."""
    one = replace(BATCH, rows_in=1, rows_out=0, watermark=None)

    assert batch_text(one) == "big batch 0: 1 row in, 0 rows out, 0.84 s"


def test_late_rows_are_shown() -> None:
    """Batches and results say how many rows were dropped behind the watermark, if there are any."""
    state = StateProgress(("stateStoreSave",), rows=3, updated_rows=1, removed_rows=0, memory_bytes=9, late_rows=1)
    assert batch_text(replace(BATCH, state=state)).endswith(", 1 late row dropped")
    assert "late" not in batch_text(replace(BATCH, state=replace(state, late_rows=0)))
    assert run_text(replace(BIG, late_rows=2000)).endswith("[SUCCESS 2 batches in 3.20 s, 2,000 late rows dropped]")


def test_dropped_records_are_shown() -> None:
    """Dropped records are shown with each batch that has some, and in total at the end."""
    assert batch_text(replace(BATCH, dropped_records=1)).endswith(", 1 corrupt record dropped")
    assert run_text(replace(BIG, dropped_records=2000)).endswith(
        "[SUCCESS 2 batches in 3.20 s, 2,000 corrupt records dropped]"
    )


def test_a_complete_memory_table_has_no_limit_note() -> None:
    """For a complete memory table, nothing says that only the first rows are shown."""
    assert memory_text(TableShown("totals", ("kind",), (("a",),), 1)) == "\ntotals (1 row)\nkind\n────\na"


def test_nested_values_of_a_memory_table_are_shown_as_json() -> None:
    """Nested values of a memory table are JSON, as in `show`; text has no quotes."""
    row = (None, True, "a", [1, None], {"b": "c"})
    shown = memory_text(TableShown("totals", ("v", "w", "x", "y", "z"), (row,), 1))
    assert shown.splitlines()[-1].split("   ") == ["null", "true", "a", "[1, null]", '{"b": "c"}']


def test_the_summary_has_a_row_for_each_query() -> None:
    """The summary has one row per query, with paths relative to the project and `-` for unknown values."""
    assert summary_text(RESULTS, Counts(1), Path("/project")) == (
        "\n"
        "query   status    batches   rows in   rows out     duration   output\n"
        "──────────────────────────────────────────────────────────────────────────────────\n"
        "big     success         2    12,345          -       3.20 s   .sqlstream/local/big\n"
        "poor    error           1         5          5   2 min 05 s   s3a://bucket/poor\n"
        "late    skipped         -         -          -            -   -\n"
        "\n"
        "Done. PASS=1 WARN=1 ERROR=1 SKIP=1 TOTAL=3"
    )


def test_a_query_without_an_output_path_has_a_dash() -> None:
    """A query without an output path, such as a console or noop sink, shows a dash."""
    assert summary_text([replace(BIG, output=None)], Counts(), Path("/project")).split("\n")[3].endswith(" -")


@pytest.mark.parametrize(
    ("statuses", "warnings", "expected"),
    [
        ((), 0, "Done. PASS=0 WARN=0 ERROR=0 SKIP=0 TOTAL=0"),
        ((Status.SUCCESS, Status.INTERRUPTED), 3, "Done. PASS=2 WARN=3 ERROR=0 SKIP=0 TOTAL=2"),
        ((Status.ERROR, Status.SKIPPED, Status.SKIPPED), 0, "Done. PASS=0 WARN=0 ERROR=1 SKIP=2 TOTAL=3"),
    ],
)
def test_the_last_line_counts_as_dbt_does(statuses: tuple[Status, ...], warnings: int, expected: str) -> None:
    """The last line counts as in dbt; a query that is stopped in a batch counts as passed, because it can resume."""
    results = [replace(POOR if status is Status.ERROR else LATE, status=status) for status in statuses]

    assert done_line(results, Counts(warnings)) == expected
