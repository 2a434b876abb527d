"""Generates the rows for benchmarks of runs, the same for both sides."""

from __future__ import annotations

import gzip
import json
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
START = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = ("click", "view", "buy", "leave")
DEVICES = 200
RECORDS_IN_FILE = 5_000
SECONDS_BETWEEN_FILES = 10


def write_cloudtrail(folder: Path, records: int) -> None:
    """Writes gzipped files of CloudTrail records: those of the example repeatedly, with unique ids."""
    pool = [record for file in sorted((ROOT / "tests/data/cloudtrail").rglob("*.gz")) for record in _records(file)]
    written = number = 0
    while written < records:
        batch = [pool[(written + i) % len(pool)] for i in range(min(RECORDS_IN_FILE, records - written))]
        for i, record in enumerate(batch):
            record["eventID"] = f"{written + i:032x}"
        text = json.dumps({"Records": batch}, separators=(",", ":"))
        path = folder / f"day-{number % 10}" / f"{number:05}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(text.encode(), compresslevel=1, mtime=0))
        _set_time(path, number)
        written, number = written + len(batch), number + 1


def write_events(folder: Path, files: int, rows_in_file: int) -> None:
    """Writes files of JSON lines. Each file has the events of the next hour."""
    folder.mkdir(parents=True)
    for number in range(files):
        first = number * rows_in_file
        lines = [_event(first + i, 3600 * (number + i / rows_in_file)) for i in range(rows_in_file)]
        path = folder / f"{number:05}.json"
        path.write_text("".join(lines))
        _set_time(path, number)


def _records(path: Path) -> list[dict[str, object]]:
    with gzip.open(path, "rt") as file:
        found: list[dict[str, object]] = json.load(file)["Records"]
    return found


def _event(number: int, seconds: float) -> str:
    time = (START + timedelta(seconds=seconds)).isoformat(timespec="milliseconds")
    device, kind = f"d{number * 7919 % DEVICES}", KINDS[number * 31 % len(KINDS)]
    return f'{{"event_time":"{time}","device":"{device}","kind":"{kind}","amount":{number % 1000 / 8}}}\n'


def _set_time(path: Path, number: int) -> None:
    """Sets the time of a file. Spark reads files in the order of their times."""
    at = START.timestamp() + number * SECONDS_BETWEEN_FILES
    os.utime(path, (at, at))
