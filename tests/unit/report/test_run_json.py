"""A run as JSON lines."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlstream.report.run_json import JsonReporter
from sqlstream.state.runs.events import TableShown, WarningEmitted
from tests.support.run_events import EVENTS, FAILURE, RESULTS


def json_lines() -> list[dict[str, Any]]:
    """Returns the parsed lines of a whole run."""
    lines: list[str] = []
    reporter = JsonReporter(lines.append)
    for event in EVENTS:
        reporter(event)
    reporter(WarningEmitted(FAILURE))
    reporter.done(len(RESULTS), succeeded=False)
    assert not any("\n" in line for line in lines)
    return [json.loads(line) for line in lines]


def test_every_event_is_one_line_with_its_name() -> None:
    """Every event is one line with its name, in order of time."""
    assert [line["event"] for line in json_lines()] == [
        "query_started",
        "batch",
        "query_restarting",
        "notice",
        "query_ended",
        "query_ended",
        "query_ended",
        "memory_table",
        "finding",
        "done",
    ]


def test_every_line_has_the_time_in_utc() -> None:
    """Every line has the UTC time in ISO 8601, to the millisecond."""
    for line in json_lines():
        assert datetime.fromisoformat(line["time"]).utcoffset() == timedelta(0)
        assert line["time"].endswith("Z")


def test_a_batch_has_its_figures() -> None:
    """A batch has its figures, and null for unknown ones."""
    batch = json_lines()[1]

    assert (batch["model"], batch["batch_id"], batch["duration_ms"]) == ("big", 0, 840)
    assert (batch["rows_in"], batch["rows_out"]) == (1234, None)


def test_an_end_has_the_model_and_the_error() -> None:
    """A query's end has the same entry as run_results.json, with the model's name and error."""
    good, bad = json_lines()[4:6]

    assert (good["model"], good["status"], good["error"]) == ("big", "success", None)
    assert (bad["model"], bad["status"], bad["error"]["code"]) == ("poor", "error", "query-failed")


def test_a_memory_table_has_its_rows() -> None:
    """A memory table has its rows unchanged, and their total number."""
    table = json_lines()[7]

    assert (table["columns"], table["rows"], table["count"]) == (["kind", "total"], [["a", 12], ["b", 8]], 30)


def test_numbers_keep_their_digits_and_lines_are_ascii() -> None:
    """Numbers keep their digits and lines are ASCII, so that the reader's encoding does not matter."""
    lines: list[str] = []
    JsonReporter(lines.append)(TableShown("totals", ("v",), ((Decimal("12345678901234567890.10"),), ("größer 𝄞",)), 2))

    assert '"rows": [[12345678901234567890.10], ["' in lines[0]
    assert lines[0].isascii()
    assert json.loads(lines[0])["rows"][1] == ["größer 𝄞"]


def test_findings_and_the_last_line() -> None:
    """A finding has its location as numbers, and the last line gives the overall success."""
    finding, done = json_lines()[-2:]

    assert (finding["code"], finding["location"]["line"]) == ("query-failed", 3)
    assert (done["succeeded"], done["queries"]) == (False, 3)


def test_a_restart_has_its_delay_and_its_cause() -> None:
    """A restart has its delay, and its cause in the usual form of findings."""
    (line,) = [line for line in json_lines() if line["event"] == "query_restarting"]

    assert (line["model"], line["attempt"], line["attempts"], line["delay_seconds"]) == ("poor", 1, 3, 1.3)
    assert line["finding"] == FAILURE.as_json()
