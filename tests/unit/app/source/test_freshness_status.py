"""Whether the age of a source exceeds its thresholds, and when a table of Delta Lake got its last rows."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sqlstream.app.source.freshness_result import NEVER, FreshnessStatus, Measured, judge
from sqlstream.project.configuration.freshness import Freshness, Threshold
from sqlstream.spark.storage.local import LocalStorage
from sqlstream.state.sources.source_files import last_rows_added

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR, DAY = Threshold(count=1, period="hour"), Threshold(count=1, period="day")


@pytest.mark.parametrize(
    ("warn_after", "error_after", "age", "status"),
    [
        (HOUR, DAY, timedelta(hours=1), FreshnessStatus.PASS),
        (HOUR, DAY, timedelta(hours=1, seconds=1), FreshnessStatus.WARN),
        (HOUR, DAY, timedelta(days=1), FreshnessStatus.WARN),
        (HOUR, DAY, timedelta(days=1, microseconds=1), FreshnessStatus.ERROR),
        (HOUR, None, NOW - NEVER, FreshnessStatus.WARN),
        (None, DAY, NOW - NEVER, FreshnessStatus.ERROR),
        (None, DAY, timedelta(hours=23), FreshnessStatus.PASS),
        (HOUR, DAY, timedelta(days=-9), FreshnessStatus.PASS),
    ],
)
def test_an_age_is_compared_with_both_thresholds(
    warn_after: Threshold | None, error_after: Threshold | None, age: timedelta, status: FreshnessStatus
) -> None:
    """An age above a threshold exceeds it, an equal one does not; a source without data exceeds each."""
    assert judge(Freshness(warn_after=warn_after, error_after=error_after), Measured(NOW - age, NOW)) is status


ADD: dict[str, object] = {"add": {"path": "a", "dataChange": True}}
OPTIMIZE: dict[str, object] = {"add": {"path": "b", "dataChange": False}}
DELETE: dict[str, object] = {"remove": {"path": "a", "dataChange": True}}


DELETE_OF_SOME_ROWS: dict[str, object] = {"commitInfo": {"operation": "DELETE", "timestamp": 8_000}}


def commit(table: Path, version: int, *actions: dict[str, object], at: int | None = None) -> None:
    """Writes a commit of a table, with a time in milliseconds in it if there is one."""
    info = [] if at is None else [{"commitInfo": {"timestamp": at}}]
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    file = log / f"{version:020d}.json"
    file.write_text("\n".join(json.dumps(action) for action in (*actions, *info)))
    os.utime(file, (version, version))


def test_only_commits_with_new_rows_count(tmp_path: Path) -> None:
    """OPTIMIZE and DELETE are no new data; a commit without a time has that of its file."""
    commit(tmp_path, 0, {"metaData": {}}, at=1_000)
    assert last_rows_added(LocalStorage(), str(tmp_path)) is None
    commit(tmp_path, 1, ADD)
    assert last_rows_added(LocalStorage(), str(tmp_path)) == 1_000
    commit(tmp_path, 2, ADD, at=5_000)
    commit(tmp_path, 3, OPTIMIZE, at=6_000)
    commit(tmp_path, 4, DELETE, at=7_000)
    commit(tmp_path, 5, DELETE, ADD, DELETE_OF_SOME_ROWS)  # the file with the rows that stay

    assert last_rows_added(LocalStorage(), str(tmp_path)) == 5_000
    assert last_rows_added(LocalStorage(), str(tmp_path), changes=True) == 8_000  # deleted rows are changes, too


def test_a_log_without_its_start_gives_the_oldest_commit(tmp_path: Path) -> None:
    """If the commits with rows were removed from the log, the rows are as old as the oldest commit that is left."""
    commit(tmp_path, 8, OPTIMIZE, at=8_000)
    commit(tmp_path, 9, OPTIMIZE, at=9_000)

    assert last_rows_added(LocalStorage(), str(tmp_path)) == 8_000


def test_a_folder_without_a_log_is_no_table(tmp_path: Path) -> None:
    """A folder without a log is an error, not an empty table."""
    with pytest.raises(FileNotFoundError):
        last_rows_added(LocalStorage(), str(tmp_path))
