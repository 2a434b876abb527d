"""The generators reproduce the example data, which has the properties that the examples show."""

from __future__ import annotations

import csv
import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
DATA = ROOT / "tests" / "data"
CLOUDTRAIL_DAYS = ["2024-03-04", "2024-03-05", "2024-03-06", "2024-03-07"]
DELAY = timedelta(minutes=10)  # the watermark delay of the examples with files that arrive one by one
ORDERED_SCRIPTS = [
    "make_activity.py",
    "make_cloudtrail.py",
    "make_devices.py",
    "make_events.py",
    "make_logs.py",
    "make_nest.py",
]
SCRIPTS = [*ORDERED_SCRIPTS, "make_cdc.py", "make_transforms.py"]


def run(script: str, *arguments: str) -> None:
    """Runs a generator of tests/data, which must succeed."""
    subprocess.run([sys.executable, DATA / script, *arguments], check=True, capture_output=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Returns the bytes of all files below a folder by path."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def committed() -> dict[str, bytes]:
    """Returns the committed CloudTrail files, without files that somebody has added."""
    return {name: content for name, content in contents(DATA / "cloudtrail").items() if name[:10] in CLOUDTRAIL_DAYS}


def uncompressed(files: dict[str, bytes]) -> dict[str, bytes]:
    """Returns the uncompressed content of the files."""
    return {name: gzip.decompress(content) for name, content in files.items()}


def events(files: dict[str, bytes]) -> list[dict[str, Any]]:
    """Returns the records of all CloudTrail files, in order of path."""
    return [record for name in sorted(files) for record in json.loads(gzip.decompress(files[name]))["Records"]]


def event_times(text: str, name: str) -> list[datetime]:
    """Returns the times of a file's rows in seconds since 1970."""
    values = [json.loads(line)[name] for line in text.splitlines()]
    return [
        datetime.fromisoformat(value) if isinstance(value, str) else datetime.fromtimestamp(value, UTC)
        for value in values
    ]


def latenesses(example: str, name: str) -> list[timedelta]:
    """Returns how far each row is behind the latest time of the earlier files."""
    latest, behind = datetime.fromisoformat("2024-03-04T00:00:00Z"), []
    for path in sorted((DATA / example).glob("*.json")):
        times = event_times(path.read_text(), name)
        behind += [latest - time for time in times]
        latest = max(latest, *times)
    return behind


def test_cloudtrail_files_are_what_the_generator_makes(tmp_path: Path) -> None:
    """The same seed gives the committed files. Contents are compared, because gzip output depends on zlib."""
    run("make_cloudtrail.py", "--out", str(tmp_path))
    assert uncompressed(contents(tmp_path)) == uncompressed(committed())


def test_nest_files_are_what_the_generator_makes(tmp_path: Path) -> None:
    """The same seed gives the committed messages: a line every 20 seconds for 12 hours."""
    run("make_nest.py", "--out", str(tmp_path))
    files = uncompressed(contents(tmp_path))
    assert files == uncompressed(contents(DATA / "nest"))
    assert sum(len(content.splitlines()) for content in files.values()) == 12 * 60 * 3


@pytest.mark.parametrize("example", ["activity", "cdc", "devices", "events", "logs", "transforms"])
def test_files_are_what_the_generator_makes(example: str, tmp_path: Path) -> None:
    """The same seed gives the committed files, byte for byte."""
    run(f"make_{example}.py", "--out", str(tmp_path))
    assert contents(tmp_path) == contents(DATA / example)
    assert sum(map(len, contents(tmp_path).values())) < 100_000


@pytest.mark.parametrize("script", SCRIPTS)
def test_another_seed_makes_other_data(script: str, tmp_path: Path) -> None:
    """The same seed gives the same bytes, and another seed gives other data."""
    for folder, seed in (("a", "1"), ("b", "1"), ("c", "2")):
        run(script, "--out", str(tmp_path / folder), "--seed", seed)
    assert contents(tmp_path / "a") == contents(tmp_path / "b")
    assert contents(tmp_path / "a") != contents(tmp_path / "c")


def test_cloudtrail_files_are_one_line_of_records() -> None:
    """About 40 files over four dates have one line of JSON each, and 3,000 to 5,000 records in total."""
    files = uncompressed(committed())
    assert sorted({name.split("/")[0] for name in files}) == CLOUDTRAIL_DAYS
    assert len(files) == 40
    assert all(b"\n" not in content and list(json.loads(content)) == ["Records"] for content in files.values())
    assert 3_000 <= len(events(committed())) <= 5_000


def test_cloudtrail_data_is_small() -> None:
    """The committed files are smaller than one megabyte."""
    assert sum(len(content) for content in committed().values()) < 1_000_000


def test_cloudtrail_records_have_nulls_errors_and_missing_fields() -> None:
    """Records have error codes, explicit nulls, missing fields and parameters of different shapes."""
    records = events(committed())
    assert {"AccessDenied", "NoSuchKey", "Client.UnauthorizedOperation"} <= {r.get("errorCode") for r in records}
    assert any(r["requestParameters"] is None for r in records)
    assert any(r["responseElements"] is None for r in records)
    assert any("resources" not in r for r in records)
    assert len({tuple(r["requestParameters"] or ()) for r in records}) > 15
    assert len({r["eventID"] for r in records}) == len(records)


def test_cloudtrail_has_a_burst_of_failed_logins() -> None:
    """Within about ten minutes, one address has more failed logins than any other in four days."""
    failures = [
        (r["eventTime"][:15], r["sourceIPAddress"])
        for r in events(committed())
        if r["eventName"] == "ConsoleLogin" and r["responseElements"] == {"ConsoleLogin": "Failure"}
    ]
    burst = [failure for failure in failures if failure[1] == "203.0.113.66"]
    assert {time[:13] for time, _ in burst} == {"2024-03-05T14"}
    assert len(burst) == 36
    assert len(failures) > len(burst) + 15


def test_cloudtrail_files_are_in_order_of_time() -> None:
    """Each file's records are later than those of earlier files, so oldest first drops no rows behind a watermark."""
    files = uncompressed(committed())
    times = [[r["eventTime"] for r in json.loads(files[name])["Records"]] for name in sorted(files)]
    assert all(max(before) < min(after) for before, after in pairwise(times))


def test_the_extra_file_is_later_than_all_others(tmp_path: Path) -> None:
    """`--extra` writes one file of about 100 events that are later than every committed one."""
    run("make_cloudtrail.py", "--extra", "--out", str(tmp_path))
    extra = events(contents(tmp_path))
    assert len(contents(tmp_path)) == 1
    assert 80 <= len(extra) <= 130
    assert min(r["eventTime"] for r in extra) > max(r["eventTime"] for r in events(committed()))


def test_more_extra_files_are_later(tmp_path: Path) -> None:
    """`--extra 2` adds a second file with later events."""
    run("make_cloudtrail.py", "--extra", "--out", str(tmp_path))
    first = events(contents(tmp_path))
    run("make_cloudtrail.py", "--extra", "2", "--out", str(tmp_path))
    assert len(contents(tmp_path)) == 2
    later = [r["eventTime"] for r in events(contents(tmp_path))[len(first) :]]
    assert min(later) > max(r["eventTime"] for r in first)


@pytest.mark.parametrize("script", ORDERED_SCRIPTS)
def test_modification_times_increase_with_paths(script: str, tmp_path: Path) -> None:
    """Modification times increase with the order of time, by which a file stream reads the files."""
    run(script, "--out", str(tmp_path))
    times = [(tmp_path / name).stat().st_mtime for name in sorted(contents(tmp_path))]
    assert all(before < after for before, after in pairwise(times))


@pytest.mark.parametrize(
    ("example", "name", "rows", "too_late"),
    [
        ("activity", "event_time", 316, timedelta(minutes=30)),
        ("devices", "event_time", 620, timedelta(minutes=30)),
        ("events", "time", 326, timedelta(minutes=80)),
        ("logs", "collected_at", 237, timedelta(minutes=30)),
    ],
)
def test_examples_have_late_and_too_late_rows(example: str, name: str, rows: int, too_late: timedelta) -> None:
    """Rows are fresh, late by less than the watermark's delay, or late by several files, and never in between."""
    behind = latenesses(example, name)
    assert len(behind) == rows
    assert sum(timedelta(minutes=1) < late < DELAY for late in behind) >= 10
    assert sum(late >= too_late for late in behind) >= 5
    assert not [late for late in behind if DELAY <= late < too_late]


def test_devices_pause_long_enough_for_sessions() -> None:
    """Every device has several pauses of more than ten minutes."""
    times: dict[str, list[str]] = {}
    for content in contents(DATA / "devices").values():
        for row in map(json.loads, content.splitlines()):
            times.setdefault(row["device"], []).append(row["event_time"])
    for device_times in times.values():
        moments = sorted(map(datetime.fromisoformat, device_times))
        pauses = [after - before for before, after in pairwise(moments)]
        assert sum(pause > timedelta(minutes=10) for pause in pauses) >= 3


def test_every_device_has_a_location() -> None:
    """The seed has a location for each device, and keeps the leading zeros of its zip codes."""
    with (ROOT / "seeds" / "device_locations.csv").open(newline="") as file:
        places = {row["device"]: row["zip_code"] for row in csv.DictReader(file)}
    text = b"".join(contents(DATA / "devices").values())
    assert {json.loads(line)["device"] for line in text.splitlines()} <= places.keys()
    assert all(len(code) == 5 for code in places.values())
    assert any(code.startswith("0") for code in places.values())
