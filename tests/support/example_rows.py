"""Expected rows of the worked examples, computed in plain Python from their data files."""

from __future__ import annotations

import csv
import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

Row = dict[str, Any]
Spell = tuple[str, str, float, float, int]

MINUTE = 60.0
DELAY = 10 * MINUTE
"""The watermark delay in all of the examples, in seconds."""
LOG4J = re.compile(r"([\d-]{10}) ([\d:,]{12}) +(\w+) +\[(.*?)\] (\S+) - (.*)")


def epoch(value: datetime | str) -> float:
    """Returns a time in seconds since 1970; a time without a zone is UTC."""
    time = datetime.fromisoformat(value) if isinstance(value, str) else value
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def batches(folder: Path) -> list[list[Row]]:
    """Returns the rows of each JSON-lines file of a folder, ordered by file name."""
    return [[json.loads(line) for line in path.read_text().splitlines()] for path in sorted(folder.glob("*.json"))]


def timely(files: list[list[Row]], time: Callable[[Row], float]) -> tuple[list[Row], float]:
    """Returns the rows that are not too late, and the final watermark.

    Each row of the data is late either by less than the delay or by several files. The exact moment at which the
    watermark moves therefore makes no difference.
    """
    rows, latest = [], float("-inf")
    for file in files:
        rows += [row for row in file if latest - time(row) < DELAY]
        latest = max(latest, *map(time, file))
    return rows, latest - DELAY


def windows(time: float, length: float, slide: float) -> Iterator[float]:
    """Yields the starts of the windows that contain a time."""
    start = time // slide * slide
    while start > time - length:
        yield start
        start -= slide


def count_in_windows(
    rows: Iterable[tuple[float, Any]], watermark: float, length: float, slide: float
) -> dict[tuple[float, Any], int]:
    """Counts rows of (time, key) per window start and key, for the windows that the watermark has closed."""
    counts = Counter((start, key) for time, key in rows for start in windows(time, length, slide))
    return {at: count for at, count in counts.items() if at[0] + length <= watermark}


def sessions(times: Iterable[float], watermark: float) -> Iterator[tuple[float, float, int]]:
    """Yields (start, end, count) of each closed session; a gap of ten minutes ends a session."""
    moments = sorted(times)
    breaks = [0, *(at + 1 for at, (a, b) in enumerate(pairwise(moments)) if b - a >= DELAY), len(moments)]
    for first, after in pairwise(breaks):
        end = moments[after - 1] + DELAY
        if end <= watermark:
            yield moments[first], end, after - first


def left_open(rows: Iterable[Row], watermark: float) -> set[tuple[float, str]]:
    """Returns (time, customer) of the opens that no close follows within 15 minutes, up to the watermark."""
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in rows:
        times[row["action"].lower(), row["customer_id"]].append(float(row["time"]))
    return {
        (opened, customer)
        for (action, customer), opens in times.items()
        for opened in opens
        if action == "open"
        and opened + 15 * MINUTE < watermark
        and not any(opened <= closed <= opened + 15 * MINUTE for closed in times["close", customer])
    }


def customers(folder: Path) -> dict[str, Row]:
    """Returns the customers of the events example by id."""
    with (folder / "customers" / "customers.csv").open(newline="") as file:
        return {row["customer_id"]: row for row in csv.DictReader(file)}


def log_line(row: Row) -> tuple[Any, ...]:
    """Returns the parsed fields of a log line: format, time, level, logger, message, thread, millis."""
    match = LOG4J.fullmatch(row["body"])
    if match:
        day, time, level, thread, logger, message = match.groups()
        return "log4j", epoch(f"{day} {time.replace(',', '.')}"), level, logger, message, thread, None
    try:
        entry = json.loads(row["body"])
    except ValueError:
        return "text", None, None, None, row["body"], None, None
    return (
        "json",
        epoch(entry["time"]),
        entry["level"],
        entry["logger"],
        entry["message"],
        None,
        entry["millis"],
    )


def spells(reports: Iterable[tuple[float, str]], watermark: float) -> Iterator[tuple[str, float, float, int, str]]:
    """Yields (activity, first, last, reports, ended by) for one user's reports, up to the watermark."""
    run: list[tuple[float, str]] = []
    for time, activity in [*sorted(report for report in reports if report[0] <= watermark), (watermark, "")]:
        silent = bool(run) and time - run[-1][0] >= DELAY
        if run and (silent or (activity and activity != run[-1][1])):
            yield run[0][1], run[0][0], run[-1][0], len(run), "silence" if silent else activity
            run = []
        run.append((time, activity))


def by_user(reports: Iterable[Row]) -> dict[str, list[tuple[float, str]]]:
    """Returns the reports of each user as (time, activity), without duplicates."""
    found: dict[str, dict[float, str]] = defaultdict(dict)
    for report in reports:
        found[report["user"]][epoch(report["event_time"])] = report["activity"]
    return {user: list(times.items()) for user, times in found.items()}


def audit_records(folder: Path) -> list[Row]:
    """Returns all records of the CloudTrail files."""
    files = sorted(folder.glob("*/*.json.gz"))
    return [record for path in files for record in json.loads(gzip.decompress(path.read_bytes()))["Records"]]
