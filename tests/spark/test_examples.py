"""The worked examples in the repository root, run on their own data; the expected rows are computed in Python."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from sqlstream.state.runs.events import TableShown
from tests.spark.conftest import LONGEST_WAIT_SECONDS, ROOT, ProjectFolder, wait_for
from tests.support.example_rows import (
    DELAY,
    MINUTE,
    audit_records,
    batches,
    by_user,
    count_in_windows,
    customers,
    epoch,
    left_open,
    log_line,
    sessions,
    spells,
    timely,
)
from tests.support.example_tables import collected_alarms, tables_of_messages, tables_of_readings

Rows = Callable[[Path], list[dict[str, Any]]]

HOUR = 60 * MINUTE


def data(example: str, project: ProjectFolder) -> Path:
    """Returns the data folder of an example."""
    return project.root / "tests/data" / example


def output(model: str, project: ProjectFolder) -> Path:
    """Returns the folder that a model has written."""
    return project.root / ".sqlstream/local" / model


def shown(project: ProjectFolder) -> dict[str, list[list[Any]]]:
    """Returns the rows of all memory tables, with fractions as floats."""
    tables = [event for event in project.events if isinstance(event, TableShown)]
    assert all(table.count == len(table.rows) for table in tables)
    return {table.model: [[plain(value) for value in row] for row in table.rows] for table in tables}


def plain(value: Any) -> Any:
    """Returns a JSON value with floats in place of Decimals."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    return float(value) if isinstance(value, Decimal) else value


def test_cloudtrail_reads_each_record_once(examples: ProjectFolder, read_parquet: Rows) -> None:
    """All CloudTrail records come out by date; a second run reads nothing, and a third run reads only a new file."""
    records = audit_records(data("cloudtrail", examples))
    first = {result.model: result for result in examples.run("cloudtrail").results}
    second = {result.model: result for result in examples.run("cloudtrail").results}
    make = [sys.executable, str(data("", examples) / "make_cloudtrail.py"), "--extra"]
    subprocess.run([*make, "--out", str(data("cloudtrail", examples))], check=True, capture_output=True)
    third = {result.model: result for result in examples.run("cloudtrail").results}

    assert (first["cloudtrail_events"].rows_in, first["cloudtrail_events"].rows_out) == (40, len(records))
    assert {result.rows_in for result in second.values()} == {0}
    assert {result.rows_in for result in third.values()} == {1}
    records = audit_records(data("cloudtrail", examples))
    events = read_parquet(output("cloudtrail_events", examples))
    assert sorted((event["event_id"], str(event["date"])) for event in events) == sorted(
        (record["eventID"], record["eventTime"][:10]) for record in records
    )
    parameters = [json.loads(event["request_parameters"]) for event in events if event["request_parameters"]]
    assert len({tuple(sorted(value)) for value in parameters}) > 5
    watermark = max(epoch(record["eventTime"]) for record in records) - DELAY
    calls = count_in_windows([(epoch(r["eventTime"]), r["eventSource"]) for r in records], watermark, HOUR, HOUR)
    hourly = read_parquet(output("cloudtrail_hourly", examples))
    assert {(epoch(row["hour"]), row["event_source"]): row["calls"] for row in hourly} == calls
    failed = [r for r in records if (r["responseElements"] or {}).get("ConsoleLogin") == "Failure"]
    tries = [(epoch(record["eventTime"]), record["sourceIPAddress"]) for record in failed]
    attacks = {at: count for at, count in count_in_windows(tries, watermark, DELAY, DELAY).items() if count >= 5}
    alerts = read_parquet(output("cloudtrail_failed_logins", examples))
    assert {(epoch(row["since"]), row["source_ip"]): row["failures"] for row in alerts} == attacks != {}


@pytest.mark.slow
def test_devices_leave_out_late_signals(examples: ProjectFolder, read_parquet: Rows) -> None:
    """Windows and sessions lack the signals that are too late; the running average includes them."""
    files = batches(data("devices", examples))
    rows, watermark = timely(files, lambda row: epoch(row["event_time"]))
    signals = [(epoch(row["event_time"]), row["device"]) for row in rows]
    every = [row for file in files for row in file]
    assert len(every) - len(rows) == 13

    assert examples.run("devices").succeeded

    averages = {row[0]: (row[2], row[3]) for row in shown(examples)["device_averages"]}
    assert {name: each[1] for name, each in averages.items()} == Counter(row["device"] for row in every)
    for name, (average, _) in averages.items():
        values = [row["signal"] for row in every if row["device"] == name and row["signal"] is not None]
        assert average == pytest.approx(sum(values) / len(values), abs=0.006)
    for model, slide in (("device_windows", 10 * MINUTE), ("device_sliding_windows", 5 * MINUTE)):
        found = {(epoch(row["since"]), row["device"]): row["signals"] for row in read_parquet(output(model, examples))}
        assert found == count_in_windows(signals, watermark, 10 * MINUTE, slide)
    found_sessions = [
        (row["device"], epoch(row["since"]), epoch(row["until"]), row["signals"])
        for row in read_parquet(output("device_sessions", examples))
    ]
    assert sorted(found_sessions) == sorted(
        (device, *session)
        for device in averages
        for session in sessions([time for time, name in signals if name == device], watermark)
    )


@pytest.mark.slow
def test_words_are_counted_from_the_example_server(examples: ProjectFolder) -> None:
    """The line server feeds the socket, and the console's last table has the twenty most frequent words."""
    server = [sys.executable, "-u", str(ROOT / "tests/data/serve_lines.py"), "--port", "0", "--rate", "0"]
    serving = subprocess.Popen(server, stdout=subprocess.PIPE, text=True)
    assert serving.stdout is not None
    port = serving.stdout.readline().rsplit(":", 1)[1].strip()
    words = Counter((data("wordcount", examples) / "lines.txt").read_text().split())
    first = sorted(words.items(), key=lambda pair: (-pair[1], pair[0]))[:20]
    width = max(len(word) for word, _ in first)
    process = examples.command("run", "--select", "wordcount", "--vars", f"{{wordcount_port: {port}}}")
    try:
        lines = wait_for(process, f"|{first[-1][0]:<{width}}|{first[-1][1]:<5}|")
    finally:
        process.terminate()
        process.communicate(timeout=LONGEST_WAIT_SECONDS)
        serving.terminate()

    assert process.returncode == 0
    cells = [[cell.strip() for cell in line.split("|")[1:3]] for line in lines[-20:]]
    assert cells == [[word, str(times)] for word, times in first]


@pytest.mark.slow
def test_events_are_counted_in_windows_and_joined(examples: ProjectFolder, read_parquet: Rows) -> None:
    """Late events count and events that are too late do not. Unknown customers have no city, and the alert lists each
    open that no close follows.
    """
    files = batches(data("events", examples))
    rows, watermark = timely(files, lambda row: float(row["time"]))
    people = customers(data("events", examples))
    assert sum(map(len, files)) - len(rows) > 5
    assert {row["customer_id"] for row in rows} - people.keys() == {"C99"}

    assert examples.run("events").succeeded

    actions = [(float(row["time"]), row["action"].lower()) for row in rows]
    hourly = read_parquet(output("events_hourly", examples))
    assert {(epoch(row["hour"]), row["action"]): row["events"] for row in hourly} == count_in_windows(
        actions, watermark, HOUR, HOUR
    )
    found: dict[tuple[float, str], int] = {}
    for row in read_parquet(output("events_sliding", examples)):
        assert epoch(row["until"]) - epoch(row["since"]) == 10 * MINUTE
        found |= {(epoch(row["since"]), action): row[f"{action}s"] for action in ("open", "close")}
    expected = count_in_windows(actions, watermark, 10 * MINUTE, 5 * MINUTE)
    assert {at: count for at, count in found.items() if count} == expected
    cities = [(float(row["time"]), people.get(row["customer_id"], {}).get("city", "unknown")) for row in rows]
    by_city = read_parquet(output("events_by_city", examples))
    assert {(epoch(row["hour"]), row["city"]): row["opens"] + row["closes"] for row in by_city} == count_in_windows(
        cities, watermark, HOUR, HOUR
    )
    yearly = [(float(r["time"]), "") for r in rows if people.get(r["customer_id"], {}).get("plan") == "yearly"]
    closed = count_in_windows(yearly, watermark, HOUR, HOUR)
    assert sum(row["of_yearly_customers"] for row in by_city) == sum(closed.values())
    newest = (max(float(row["time"]) for row in rows if row["action"] == action) for action in ("Open", "Close"))
    lockers = read_parquet(output("lockers_left_open", examples))
    found_open = {(epoch(row["opened_at"]), row["customer_id"]) for row in lockers}
    assert found_open == left_open(rows, min(newest) - DELAY) != set()


@pytest.mark.slow
def test_logs_are_deduplicated_and_parsed(examples: ProjectFolder, read_parquet: Rows) -> None:
    """Lines delivered twice come out once, within a batch and across batches; unparsed text is kept as it is."""
    files = batches(data("logs", examples))
    rows, _ = timely(files, lambda row: epoch(row["collected_at"]))
    lines = {tuple(row["metadata"].values()): row for row in rows}
    assert len(rows) - len(lines) > 20

    assert examples.run("logs").succeeded

    found = {}
    for row in read_parquet(output("service_logs", examples)):
        time = row["logged_at"] and epoch(row["logged_at"])
        entry = tuple(row[name] for name in ("level", "logger", "message", "thread", "millis"))
        place = tuple(row[name] for name in ("host", "service", "file", "offset"))
        assert place not in found
        found[place] = (row["format"], time, *entry, row["date"])
    days = {row["collected_at"][:10] for row in rows}
    assert found == {place: (*log_line(row), row["collected_at"][:10]) for place, row in lines.items()}
    assert days == {"2024-03-04", "2024-03-05"}
    levels = Counter((row["metadata"]["service"], *log_line(row)[::2][:2]) for row in lines.values())
    assert {tuple(row[:3]): row[3] for row in shown(examples)["log_levels"]} == levels


@pytest.mark.slow
def test_activity_is_counted_and_followed_per_user(examples: ProjectFolder, read_parquet: Rows) -> None:
    """Duplicates count once; another activity or ten silent minutes end a spell, and late reports are sorted in."""
    files = batches(data("activity", examples))
    rows, watermark = timely(files, lambda row: epoch(row["event_time"]))
    users = by_user(rows)
    assert sum(map(len, files)) - len(rows) > 5
    assert len(rows) - sum(map(len, users.values())) > 10

    assert examples.run("activity").succeeded

    moving = {"walk", "bike", "stairs"}
    assert shown(examples)["activity_counts"] == [
        [user, len(reports), sum(activity in moving for _, activity in reports)]
        for user, reports in sorted(users.items())
    ]
    found = defaultdict(list)
    for row in read_parquet(output("activity_spells", examples)):
        times = epoch(row["first_time"]), epoch(row["last_time"])
        found[row["user"]].append((row["activity"], *times, row["reports"], row["ended_by"]))
    expected = {user: sorted(spells(reports, watermark)) for user, reports in users.items()}
    assert {user: sorted(ended) for user, ended in found.items()} == expected
    assert "silence" in {spell[4] for ended in expected.values() for spell in ended}


@pytest.mark.slow
def test_transforms_give_one_table_per_model(examples: ProjectFolder) -> None:
    """Each model of the cookbook gives one table, from streams and from static tables."""
    readings = [row for file in batches(data("transforms", examples) / "readings") for row in file]
    (messages,) = batches(data("transforms", examples) / "messages")

    outcome = examples.run("transforms")

    assert outcome.succeeded
    tables = shown(examples)
    assert tables.pop("text_by_pattern") == [["BOS", 270, 12, None], ["EWR", 310, 8, 19], [None, None, None, None]]
    assert tables.pop("collect_lists_and_sets") == collected_alarms(readings)
    from_messages = {model: tables.pop(model) for model in ("json_to_rows", "json_partly_text", "json_tuple_fields")}
    assert from_messages == tables_of_messages(messages)
    assert tables == tables_of_readings(readings)
