"""Ten typical streaming bugs, each planted in one example: the example's unit tests find it.

All of them compile and run without a warning, but give wrong rows.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from sqlstream.app.request import ProjectRequest, Selection, UnitTestRequest
from sqlstream.app.test.unit_tests import run_tests
from sqlstream.state.runs.case_outcomes import Outcome

ROOT = Path(__file__).parents[2]
PARTS = ("project.yml", "sources.yml", "sinks.yml", "models", "macros", "seeds", "tests/models")


@dataclass(frozen=True)
class Bug:
    """A replacement in a model's file, and the cases that detect it."""

    name: str
    file: str
    right: str
    wrong: str
    found_by: frozenset[str]


def bug(name: str, file: str, right: str, wrong: str, *found_by: str) -> Bug:
    """Returns a bug in a file below models/."""
    return Bug(name, file, right, wrong, frozenset(found_by))


LATE_AND_RESTART = "an_hour_is_emitted_with_its_late_calls"
HOURLY = "an_hour_is_emitted_with_late_events_but_not_too_late_ones"

BUGS = (
    bug(
        "window off by one",
        "devices/device_windows.sql",
        "window(event_time, '10 minutes')",
        "window(event_time, '10 minutes', '10 minutes', '1 second')",
        "late_event_updates_an_open_window",
        "too_late_rows_are_counted_one_by_one",
        "a_window_begins_at_its_first_second_and_ends_before_its_last",
        "a_new_layout_resumes",
    ),
    bug(
        "half of the window",
        "events/events_sliding.sql",
        "'10 minutes', '5 minutes'",
        "'5 minutes', '5 minutes'",
        "an_event_counts_in_both_windows_that_hold_it",
    ),
    bug(
        "watermark too short",
        "cloudtrail/cloudtrail_hourly.sql",
        "WATERMARK(event_time, '10 minutes')",
        "WATERMARK(event_time, '1 minute')",
        LATE_AND_RESTART,
    ),
    bug(
        "watermark that a filter holds back",
        "cloudtrail/cloudtrail_failed_logins.sql",
        "group by window(event_time, '10 minutes'), source_ip",
        "where failed_login group by window(event_time, '10 minutes'), source_ip",
        "five_failures_of_one_address_in_one_window_alert",
    ),
    bug(
        "wrong bound of a join",
        "events/lockers_left_open.sql",
        "between o.event_time and o.event_time + interval 15 minutes",
        "between o.event_time and o.event_time + interval 16 minutes",
        "an_open_is_reported_when_no_close_can_follow",
    ),
    bug(
        "inner join that loses rows",
        "events/events_by_city.sql",
        "left join",
        "join",
        "customers_missing_from_the_table_get_city_unknown",
    ),
    bug(
        "duplicates by the wrong key",
        "logs/log_lines.sql",
        "deduplicate=['host', 'file', 'offset']",
        "deduplicate=['file', 'offset']",
        "a_line_that_is_delivered_again_is_left_out",
    ),
    bug(
        "update read as append",
        "events/events_hourly.sql",
        "output_mode='append'",
        "output_mode='update'",
        HOURLY,
    ),
    bug(
        "session gap too long",
        "devices/device_sessions.sql",
        "session_window(event_time, '10 minutes')",
        "session_window(event_time, '11 minutes')",
        "a_late_signal_joins_two_sessions",
        "a_pause_of_more_than_ten_minutes_ends_a_session",
    ),
    bug(
        "lost watermark",
        "activity/activity_reports.sql",
        "select /*+ WATERMARK(event_time, '10 minutes') */ user",
        "select user",
        "a_report_that_comes_twice_counts_once",
        "a_report_at_the_watermark_is_too_late_and_one_just_after_it_is_not",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("planted", [pytest.param(each, id=each.name.replace(" ", "-")) for each in BUGS])
def test_the_cases_of_the_examples_find_a_planted_bug(planted: Bug, tmp_path: Path) -> None:
    """All cases of the model pass before the bug is planted; afterwards exactly the named cases fail."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        (tmp_path / part).parent.mkdir(parents=True, exist_ok=True)
        copy(ROOT / part, tmp_path / part)
    model = tmp_path / "models" / planted.file
    text = model.read_text()
    assert planted.right in text
    model.write_text(text.replace(planted.right, planted.wrong))

    chosen = Selection((model.stem,))
    outcome = run_tests(UnitTestRequest(ProjectRequest(tmp_path), chosen), lambda _result, _total: None)

    found = {result.name for result in outcome.results if result.outcome in (Outcome.FAILED, Outcome.BROKEN)}
    assert found == planted.found_by
