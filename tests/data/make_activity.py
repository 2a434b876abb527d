"""Makes the activity example: JSON lines of what users do, as their phones report it, in 6 files over an hour.

    make_activity.py [--out DIR] [--seed N]

A file holds what arrived in its ten minutes. Phones report every half minute or so, some reports twice (in the same
file or in the next), and fall silent for a quarter of an hour now and then. Some reports are late by less than ten
minutes and some by more than thirty, measured as a watermark does; none lies between. The same seed gives the same
bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from ordered_files import write_in_order

START = datetime(2024, 3, 4, 17, 0, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)
FILES = 6
END = START + FILES * TEN_MINUTES
USERS = ("ann", "ben", "cleo", "dev", "eli")
ACTIVITIES = ("sit", "stand", "walk", "bike", "stairs")
REPORTS_IN_SPELL = (4, 14)
SECONDS_BETWEEN_REPORTS = (25, 50)
SILENCE_RATE = 0.25  # of the spells: a silence follows them
SILENCE_SECONDS = (13 * 60, 18 * 60)
TWICE_RATE = 0.08  # of all reports: these are in their file twice
LATE_RATE = 0.10  # of the reports of a file's last eight minutes: they arrive in the next file
LATE_AGAIN_RATE = 0.08  # of the same: they arrive in both
TOO_LATE_RATE = 0.12  # of the reports of the first two files: they arrive four files later


@dataclass(frozen=True)
class Report:
    """What a user did at a moment."""

    user: str
    event_time: datetime
    activity: str

    def line(self) -> str:
        """Return the report as one line of JSON, its time in UTC to the millisecond."""
        time = self.event_time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return (
            json.dumps({"user": self.user, "event_time": time, "activity": self.activity}, separators=(",", ":")) + "\n"
        )


def reports_of(rng: random.Random, user: str) -> Iterator[Report]:
    """Yield a user's reports in the order of time: spells of one activity, and silences."""
    time, activity = START + timedelta(seconds=rng.randint(0, 60)), ""
    while time < END:
        activity = rng.choice([other for other in ACTIVITIES if other != activity])
        for _ in range(rng.randint(*REPORTS_IN_SPELL)):
            if time < END:
                yield Report(user, time, activity)
            time += timedelta(seconds=rng.randint(*SECONDS_BETWEEN_REPORTS), milliseconds=rng.randrange(1000))
        if rng.random() < SILENCE_RATE:
            time += timedelta(seconds=rng.randint(*SILENCE_SECONDS))


def arrivals(rng: random.Random, report: Report) -> Iterator[int]:
    """Yield the numbers of the files that contain a report."""
    file, within = divmod(report.event_time - START, TEN_MINUTES)
    chance = rng.random()
    if file < FILES - 4 and chance > 1 - TOO_LATE_RATE:
        yield file + 4
    elif within >= timedelta(minutes=2) and chance < LATE_RATE + LATE_AGAIN_RATE:
        if chance >= LATE_RATE:
            yield file
        yield file + 1
    else:
        yield file
        if rng.random() < TWICE_RATE:
            yield file


def main() -> None:
    """Write the files and print how many reports they hold."""
    parser = argparse.ArgumentParser(description="Make the activity example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("activity"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    contents: list[list[Report]] = [[] for _ in range(FILES)]
    for user in USERS:
        rng = random.Random(f"{options.seed} {user}")
        for report in reports_of(rng, user):
            for file in arrivals(rng, report):
                if file < FILES:
                    contents[file].append(report)
    files = []
    for number, reports in enumerate(contents):
        lines = [report.line() for report in sorted(reports, key=lambda report: (report.event_time, report.user))]
        files.append(
            (options.out / f"reports-{START + number * TEN_MINUTES:%Y%m%dT%H%M}Z.json", "".join(lines).encode())
        )
    write_in_order(files)
    print(f"{FILES} files, {sum(map(len, contents))} reports in {options.out}")


if __name__ == "__main__":
    main()
