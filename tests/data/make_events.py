"""Makes the events example: JSON lines of lockers opened and closed in 6 files over three hours, and the customers.

    make_events.py [--out DIR] [--seed N]

A file holds what arrived in its half hour, times in seconds since 1970. Most events are fresh; some are late by less
than ten minutes and some by more than eighty, measured as a watermark does: against the latest time of all files
before. None lies between, so with a delay of 10 minutes it is plain which events still count, also per hour. Some
events are of a customer whom the table does not know. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ordered_files import write_in_order

START = 1_709_539_200  # 2024-03-04T08:00:00Z
HALF_HOUR = 1800
FILES = 6
VISITS = 170
SECONDS_OPEN = (40, 1500)
LATE_RATE = 0.35  # of the events of a half hour's last nine minutes: they arrive in the next half hour
TOO_LATE_RATE = 0.07  # of the events of the first hour: they arrive four half hours later
CUSTOMERS = (
    ("C01", "Ada Lund", "Boston", "yearly"),
    ("C02", "Bo Marsh", "Boston", "monthly"),
    ("C03", "Cora Diaz", "Newark", "yearly"),
    ("C04", "Dev Rao", "Newark", "single"),
    ("C05", "Ewa Nowak", "Providence", "monthly"),
    ("C06", "Finn O'Hara", "Boston", "single"),
    ("C07", "Gus Weiss", "Seattle", "yearly"),
    ("C08", "Hana Sato", "Seattle", "monthly"),
)
UNKNOWN = "C99"  # has a locker, and no row in the table


@dataclass(frozen=True)
class Event:
    """A locker opened or closed, and in which of the files it arrived."""

    time: int
    action: str
    customer_id: str
    file: int

    def line(self) -> str:
        """Return the event as one line of JSON."""
        row = {"time": self.time, "action": self.action, "customer_id": self.customer_id}
        return json.dumps(row, separators=(",", ":")) + "\n"


def arrival(rng: random.Random, time: int) -> int:
    """Return the number of the file in which an event of `time` arrives: that of its half hour, or a later one."""
    file, second = divmod(time - START, HALF_HOUR)
    if file < FILES - 4 and rng.random() < TOO_LATE_RATE:
        return file + 4
    if second >= 21 * 60 and rng.random() < LATE_RATE:
        return file + 1
    return file


def visits(rng: random.Random) -> Iterator[Event]:
    """Yield an open and a close for every visit of a customer, in no order; what arrives after the end is left out."""
    customers = [*(customer[0] for customer in CUSTOMERS), UNKNOWN]
    for _ in range(VISITS):
        customer = rng.choice(customers)
        opened = START + rng.randrange(FILES * HALF_HOUR)
        for action, time in (("Open", opened), ("Close", opened + rng.randint(*SECONDS_OPEN))):
            event = Event(time, action, customer, arrival(rng, time))
            if event.file < FILES:
                yield event


def customer_table() -> bytes:
    """Return the customers as CSV."""
    lines = [",".join(row) for row in (("customer_id", "name", "city", "plan"), *CUSTOMERS)]
    return ("\n".join(lines) + "\n").encode()


def main() -> None:
    """Write the files and print how many events they hold."""
    parser = argparse.ArgumentParser(description="Make the events example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("events"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    events = sorted(visits(random.Random(options.seed)), key=lambda event: (event.file, event.time, event.customer_id))
    files = [(options.out / "customers" / "customers.csv", customer_table())]
    for number in range(FILES):
        minutes = 8 * 60 + number * 30
        name = f"events-20240304T{minutes // 60:02}{minutes % 60:02}Z.json"
        files.append((options.out / name, "".join(e.line() for e in events if e.file == number).encode()))
    write_in_order(files)
    print(f"{FILES} files, {len(events)} events in {options.out}")


if __name__ == "__main__":
    main()
