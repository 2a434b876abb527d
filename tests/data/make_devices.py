"""Makes the devices example: JSON lines of IoT signals that arrive in 12 files over three hours.

    make_devices.py [--out DIR] [--seed N]

A file holds what arrived in its quarter of an hour. Most rows are fresh; some are late by less than ten minutes and
some by more than thirty, measured as a watermark does: against the latest event time of all files before. None lies
between, so with a delay of 10 minutes it is plain which rows still count. Devices send in spells with pauses of more
than ten minutes, so session windows show. The same seed gives the same bytes.
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

START = datetime(2024, 3, 4, 10, 0, tzinfo=UTC)
QUARTER = timedelta(minutes=15)
FILES = 12
END = START + FILES * QUARTER
SIGNALS_IN_SPELL = (6, 14)
SECONDS_BETWEEN_SIGNALS = (20, 100)
PAUSE_SECONDS = (11 * 60, 17 * 60)
LATE_RATE = 0.12  # of the rows of a quarter's minutes 6 to 13: they arrive in the next quarter
TOO_LATE_RATE = 0.04  # of the rows of a quarter's minutes 0 to 9: they arrive three quarters later
NULL_RATE = 0.02
LEVELS = {"boiler-1": 71.0, "boiler-2": 68.5, "freezer-1": -18.0, "freezer-2": -20.5, "pump-1": 3.2, "pump-2": 3.4}
DOORS = ("door-1", "door-2")  # their signals are whole numbers, 0 or 1


@dataclass(frozen=True)
class Signal:
    """One reading, and when it arrived."""

    event_time: datetime
    received_at: datetime
    device: str
    signal: float | None
    battery: int

    def line(self) -> str:
        """Return the reading as one line of JSON, times in UTC to the millisecond."""
        row = {**vars(self), "event_time": iso(self.event_time), "received_at": iso(self.received_at)}
        return json.dumps(row, separators=(",", ":")) + "\n"


def iso(time: datetime) -> str:
    """Return a time as 2024-03-04T10:00:12.345Z."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def event_times(rng: random.Random) -> Iterator[datetime]:
    """Yield the times at which a device sends: spells of signals, and pauses between them."""
    time = START + timedelta(seconds=rng.randint(0, 600))
    while time < END:
        for _ in range(rng.randint(*SIGNALS_IN_SPELL)):
            yield time
            time += timedelta(seconds=rng.randint(*SECONDS_BETWEEN_SIGNALS), milliseconds=rng.randrange(1000))
        time += timedelta(seconds=rng.randint(*PAUSE_SECONDS))


def arrival(rng: random.Random, event_time: datetime) -> datetime:
    """Return when a signal arrives: within seconds, or one or three quarters after its own."""
    since_quarter = (event_time - START) % QUARTER
    minute = int(since_quarter.total_seconds() // 60)
    quarters = 0
    if minute <= 9 and rng.random() < TOO_LATE_RATE:
        quarters = 3
    elif 6 <= minute <= 13 and rng.random() < LATE_RATE:
        quarters = 1
    if not quarters:
        return event_time + timedelta(milliseconds=rng.randint(200, 4000))
    return event_time - since_quarter + quarters * QUARTER + timedelta(milliseconds=rng.randrange(840_000))


def reading(rng: random.Random, device: str) -> float | None:
    """Return what a device measures: a number near its level, 0 or 1 for a door, now and then nothing."""
    if rng.random() < NULL_RATE:
        return None
    if device in DOORS:
        return rng.randint(0, 1)
    return round(LEVELS[device] + rng.uniform(-1.5, 1.5), 2)


def signals_of(seed: int, device: str) -> Iterator[Signal]:
    """Yield a device's signals in the order of event time, as far as they arrive before the end."""
    rng = random.Random(f"{seed} {device}")
    for number, time in enumerate(event_times(rng)):
        signal = Signal(time, arrival(rng, time), device, reading(rng, device), 100 - number // 4)
        if signal.received_at < END:
            yield signal


def main() -> None:
    """Write the files and print how many rows they hold."""
    parser = argparse.ArgumentParser(description="Make the devices example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("devices"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    signals = [signal for device in (*LEVELS, *DOORS) for signal in signals_of(options.seed, device)]
    signals.sort(key=lambda signal: (signal.received_at, signal.device))
    files = []
    for number in range(FILES):
        start = START + number * QUARTER
        lines = [signal.line() for signal in signals if start <= signal.received_at < start + QUARTER]
        files.append((options.out / f"signals-{start:%Y%m%dT%H%M}Z.json", "".join(lines).encode()))
    write_in_order(files)
    print(f"{len(files)} files, {len(signals)} rows in {options.out}")


if __name__ == "__main__":
    main()
