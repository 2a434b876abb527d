"""The worked examples of the repository's root, run on their own data."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import LONGEST_WAIT_SECONDS, ProjectFolder, wait_for

from sqlstream.state.events import TableShown

Rows = Callable[[Path], list[dict[str, Any]]]

ROOT = Path(__file__).parents[2]
RECORDS = 3962
"""Records in tests/data/cloudtrail."""
EXTRA_DAY = "2024-03-08"
"""The folder of the further files that a reader of the README may have made, which do not belong to the repository."""


@pytest.fixture
def examples(tmp_path: Path) -> ProjectFolder:
    """A copy of the examples and their data."""
    for name in ("models", "macros", "seeds", "tests/data"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__", EXTRA_DAY))
    for name in ("project.yml", "sources.yml", "sinks.yml"):
        shutil.copy(ROOT / name, tmp_path / name)
    return ProjectFolder(tmp_path)


def test_cloudtrail_reads_each_record_once(examples: ProjectFolder, read_parquet: Rows) -> None:
    """All records come out by date; a second run reads nothing; one more file is all that the third reads."""
    first = {result.model: result for result in examples.run("cloudtrail").results}
    second = {result.model: result for result in examples.run("cloudtrail").results}
    make = [sys.executable, str(examples.root / "tests/data/make_cloudtrail.py"), "--extra"]
    subprocess.run([*make, "--out", str(examples.root / "tests/data/cloudtrail")], check=True, capture_output=True)
    third = {result.model: result for result in examples.run("cloudtrail").results}

    assert (first["cloudtrail_events"].rows_in, first["cloudtrail_events"].rows_out) == (40, RECORDS)
    assert {result.rows_in for result in second.values()} == {0}
    assert {result.rows_in for result in third.values()} == {1}
    storage = examples.root / ".sqlstream/local"
    events = read_parquet(storage / "cloudtrail_events")
    assert len({event["event_id"] for event in events}) == len(events) == RECORDS + 101
    assert len({str(event["date"]) for event in events}) >= 5
    parameters = [json.loads(event["request_parameters"]) for event in events if event["request_parameters"]]
    assert len({tuple(sorted(value)) for value in parameters}) > 5
    hourly = read_parquet(storage / "cloudtrail_hourly")
    assert sum(row["calls"] for row in hourly) == RECORDS
    assert sum(row["errors"] for row in hourly) == sum(
        e["error_code"] is not None for e in events if str(e["date"]) < "2024-03-08"
    )
    alerts = {(row["source_ip"], row["failures"]) for row in read_parquet(storage / "cloudtrail_failed_logins")}
    assert ("198.51.100.77", 15) in alerts


def test_devices_leave_out_what_is_too_late(examples: ProjectFolder, read_parquet: Rows) -> None:
    """13 signals are more than ten minutes late: the windows lack them, the running average has them all."""
    outcome = examples.run("devices")

    assert outcome.succeeded
    (shown,) = [event for event in examples.events if isinstance(event, TableShown)]
    assert sum(int(row[3]) for row in shown.rows) == 620
    windows = read_parquet(examples.root / ".sqlstream/local/device_windows")
    sessions = read_parquet(examples.root / ".sqlstream/local/device_sessions")
    assert all(row["until"] > row["since"] for row in [*windows, *sessions])
    assert sum(row["signals"] for row in windows) < 620 - 13
    assert len(read_parquet(examples.root / ".sqlstream/local/device_sliding_windows")) > len(windows)


def test_words_are_counted_from_the_examples_own_server(examples: ProjectFolder) -> None:
    """The line server feeds the socket; the console shows the counts."""
    server = [sys.executable, "-u", str(ROOT / "tests/data/serve_lines.py"), "--port", "0", "--rate", "500"]
    serving = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    port = serving.stdout.readline().rsplit(":", 1)[1].strip()
    process = examples.command("run", "--select", "wordcount", "--vars", f"{{wordcount_port: {port}}}")
    try:
        wait_for(process, "word_counts batch 1:")
    finally:
        process.terminate()
        process.communicate(timeout=LONGEST_WAIT_SECONDS)
        serving.terminate()

    assert process.returncode == 0
