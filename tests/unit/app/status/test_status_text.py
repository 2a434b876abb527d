"""The status of queries as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from sqlstream.app.status.status import ProjectStatus, QueryWithStatus, RunStatus, RunWithStatus
from sqlstream.app.status.status_text import status_json, status_text
from sqlstream.history.reads import PastRun
from sqlstream.report.run_text import query_table, sparkline

NOW = datetime(2024, 1, 1, 12, 5, 30, tzinfo=UTC)
FAILURE = {
    "code": "query-failed",
    "message": "the query of `poor` failed",
    "why": "no disk",
    "fix": "make room",
    "location": {"path": "models/poor.sql", "line": 3, "column": 2},
}
PROGRESS = {
    "batch_id": 12,
    "duration_ms": 840,
    "input_rows_per_second": 12.34,
    "processed_rows_per_second": 1234.5,
    "watermark": "2024-01-01T11:20:00.000Z",
    "state": {"rows": 1200, "memory_bytes": 2_500_000},
}
BIG: dict[str, Any] = {
    "model": "big",
    "status": "running",
    "rows_in": 12345,
    "rows_out": 0,
    "late_rows": 3,
    "watermark_lag_seconds": 600.0,
    "latest_rates": [0.0, 50.0, 100.0],
    "progress": PROGRESS,
    "silence": {"cause": "watermark", "text": "the watermark is at noon"},
    "heard_at": "2024-01-01T12:05:27.000Z",
}
POOR: dict[str, Any] = {"model": "poor", "status": "error", "error": FAILURE, "heard_at": "2024-01-01T12:05:00.000Z"}


def seen(life: RunStatus, succeeded: bool | None = None, **queries: dict[str, Any]) -> RunWithStatus:
    """A run of five minutes."""
    began, heard = "2024-01-01T12:00:00.000Z", "2024-01-01T12:05:27.000Z"
    return RunWithStatus(PastRun("3f2a91c4-0000", "local", 4711, "b/1", began, heard, succeeded, queries=queries), life)


def shown(run: RunWithStatus, *entries: dict[str, Any]) -> str:
    """Returns the text of a status in which all queries belong to one run."""
    return status_text(ProjectStatus(tuple(QueryWithStatus(run, entry) for entry in entries), (run,)), NOW, None)


def test_a_running_run() -> None:
    """A running run shows its header, its table, and why queries emit no rows or have failed."""
    assert shown(seen(RunStatus.RUNNING), BIG, POOR) == (
        "Run 3f2a91c4 of target local has been running for 5 min 30 s as process 4711, last update 3 s ago\n"
        "\n"
        "query   status    batch   rows in   rows out   in/s   done/s     took   watermark                     lag   state rows   memory   late   trend\n"
        "──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────\n"
        "big     running      12    12,345          0   12.3    1,234   0.84 s   2024-01-01 11:20:00   10 min 00 s        1,200   2.5 MB      3   ▁▅█\n"
        "poor    error         -         -          -      -        -        -   -                               -            -        -      -\n"
        "\n"
        "big emits no rows: the watermark is at noon\n"
        "\n"
        "poor failed 30 s ago\n"
        "models/poor.sql:3:2: [query-failed] the query of `poor` failed\n"
        "  why: no disk\n"
        "  fix: make room"
    )


@pytest.mark.parametrize(
    ("life", "succeeded", "words"),
    [
        (RunStatus.ENDED, True, "Run 3f2a91c4 of target local ended 3 s ago"),
        (RunStatus.ENDED, False, "Run 3f2a91c4 of target local failed, and ended 3 s ago"),
        (RunStatus.KILLED, None, "was killed: process 4711 ended without reporting a result, last update 3 s ago"),
        (RunStatus.ELSEWHERE, None, "has not reported a result, and ran on another machine"),
    ],
)
def test_outcomes_of_a_run(life: RunStatus, succeeded: bool | None, words: str) -> None:
    """Each outcome of a run has its own text."""
    assert words in shown(seen(life, succeeded, big=BIG), BIG)


def test_a_run_without_queries() -> None:
    """A refused run without queries says where to find the reasons."""
    text = shown(seen(RunStatus.ENDED, False))

    assert "was rejected before any query started (see target/run_results.json)" in text
    assert text.endswith("No query was started.")


def test_a_query_that_was_restarted_shows_its_last_failure() -> None:
    """A restarted query shows its last failure, although it runs again."""
    text = shown(seen(RunStatus.RUNNING), {**BIG, "silence": None, "restarts": 2, "last_failure": FAILURE})

    assert "big has had 2 restarts; its last error was\nmodels/poor.sql:3:2: [query-failed]" in text


def test_json_has_the_entries_and_the_runs() -> None:
    """The JSON has the entry of each query with its run, and the runs."""
    run = seen(RunStatus.KILLED)
    content = json.loads(status_json(ProjectStatus((QueryWithStatus(run, {**BIG, "status": "killed"}),), (run,)), NOW))

    assert (content["succeeded"], content["runs"][0]["life"]) == (False, "killed")
    assert content["queries"][0]["invocation_id"] == content["runs"][0]["invocation_id"]
    assert content["queries"][0]["progress"] == PROGRESS


@pytest.mark.parametrize(
    ("life", "is_newest", "share"),
    [(RunStatus.ENDED, True, 0.75), (RunStatus.RUNNING, False, 0.75), (RunStatus.ENDED, False, None)],
)
def test_json_has_the_cost_of_each_query(life: RunStatus, is_newest: bool, share: float | None) -> None:
    """A query has its share of the run, unless later runs may have other queries of that run."""
    big = {**BIG, "core_ms": 30_000, "duration_seconds": 300.0, "rows_in": 1_000_000}
    run = seen(life, big=big, poor={**POOR, "core_ms": 10_000})
    runs = (run,) if is_newest else (run, seen(RunStatus.ENDED))

    content = json.loads(status_json(ProjectStatus((QueryWithStatus(run, big),), runs), NOW))

    assert content["queries"][0]["cost"] == {
        "core_seconds_per_hour": 360.0,
        "core_seconds_per_million_rows": 30.0,
        "share_of_run": share,
    }


@pytest.mark.parametrize("width", range(10, 160, 7))
def test_a_narrow_terminal_shows_what_fits(width: int) -> None:
    """No line is wider than a narrow terminal; names and statuses are the last columns to be left out."""
    lines = query_table([BIG, {**POOR, "model": "größe" * 8}], width).splitlines()

    assert max(map(len, lines)) <= max(width, 16)
    assert lines[0].split()[:2] == ["query", "status"]


def test_a_curve_of_rates() -> None:
    """In a curve of rates the highest value is the highest bar, and zeros are a line at the bottom."""
    assert sparkline([0.0, 1.0, 7.0]) == "▁▂█"
    assert (sparkline([0.0, 0.0]), sparkline([])) == ("▁▁", "")


def test_queries_with_the_same_reason_share_a_line() -> None:
    """Queries that emit no rows for the same reason, such as an empty source, share a line."""
    run = seen(RunStatus.ENDED, True)
    silent = {"status": "success", "silence": {"cause": "no_input", "text": "there was no new data to read from a.b"}}
    queries = tuple(QueryWithStatus(run, {**BIG, "model": name, **silent}) for name in ("one", "two"))

    text = status_text(ProjectStatus(queries, (run,)), NOW, None)

    assert "\n\none, two emitted no rows: there was no new data to read from a.b" in text
    assert text.count("no new data") == 1


def test_violations_of_data_tests() -> None:
    """Each data test that rows violate has a line, also if only one row does."""
    counts = {
        "big.small": {"passed": 1200, "failed": 34},
        "big.id": {"passed": 9, "failed": 1},
        "big.x": {"passed": 1, "failed": 0},
    }
    lines = shown(seen(RunStatus.RUNNING), {**BIG, "data_tests": counts}, POOR).splitlines()
    assert [line for line in lines if "violate" in line] == [
        "big: 34 of 1,234 rows violate big.small",
        "big: 1 of 10 rows violates big.id",
    ]
