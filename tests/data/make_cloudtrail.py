"""Makes the CloudTrail example: gzipped files of one line `{"Records":[...]}`, as AWS delivers them.

    make_cloudtrail.py                      the 40 files of 2024-03-04 to 2024-03-07
    make_cloudtrail.py --extra --out DIR    one more file, of the first hour of 2024-03-08
    make_cloudtrail.py --extra 2 --out DIR  the file of the hour after that, and so on

The same seed gives the same bytes. Each file's records are later than those of all files before it, so that a
stream that reads oldest first drops nothing; the regions follow the sun, so that paths sort by time too.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import random
import string
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cloudtrail_catalog import ACCOUNT, Catalog, Record, load_catalog
from cloudtrail_records import draw_record, guessed_sign_in
from ordered_files import write_in_order

HOUR = timedelta(hours=1)
FIRST_DAY = datetime(2024, 3, 4, tzinfo=UTC)
EXTRA_DAY = FIRST_DAY + timedelta(days=4)
DUE_HOURS = (3, 6, 8, 10, 12, 14, 16, 18, 21, 24)  # the hours of a day at which its files are due
BASE_FILES = 40
READY = timedelta(minutes=10)  # a file holds records up to ten minutes before it is due,
DELIVERED = timedelta(minutes=5)  # and is named by the minute of its delivery
CALLS_BY_HOUR = (22, 20, 50, 28, 19, 18, 20, 26, 38, 50, 58, 60, 54, 56, 64, 68, 66, 60, 50, 42, 36, 30, 26, 22)
EXTRA_CALLS = 105
REGIONS = ("ap-northeast-1", "eu-west-1", "us-east-1", "us-west-2")  # six hours each; their names sort in that order


@dataclass(frozen=True)
class Slot:
    """One file: the times of its records, the hour at which it is due, and how many calls an hour it holds."""

    start: datetime
    due: datetime
    calls_by_hour: tuple[int, ...] = CALLS_BY_HOUR

    @property
    def region(self) -> str:
        """Return the region where it is day in the slot's last hour."""
        return REGIONS[(self.due - HOUR).hour // 6]

    @property
    def path(self) -> str:
        """Return the path below the output folder, with a name of the form that AWS gives."""
        delivered = self.due - DELIVERED
        unique = "".join(random.Random(f"{delivered}").choices(string.ascii_letters + string.digits, k=16))
        return f"{delivered:%Y-%m-%d}/{ACCOUNT}_CloudTrail_{self.region}_{delivered:%Y%m%dT%H%MZ}_{unique}.json.gz"


@dataclass(frozen=True)
class Burst:
    """Failed logins from one address."""

    start: datetime
    attempts: int
    seconds_between: int
    address: str


BURSTS = (
    Burst(datetime(2024, 3, 5, 14, 5, tzinfo=UTC), 36, 13, "203.0.113.66"),
    Burst(datetime(2024, 3, 7, 17, 10, tzinfo=UTC), 15, 9, "198.51.100.77"),
    *(Burst(EXTRA_DAY + hour * HOUR + timedelta(minutes=20), 12, 11, "203.0.113.99") for hour in range(24)),
)


def base_slots() -> Iterator[Slot]:
    """Yield the slots of all days in the order of time; each starts where the last one ended."""
    start = FIRST_DAY
    for day in range(4):
        for hour in DUE_HOURS:
            due = FIRST_DAY + timedelta(days=day, hours=hour)
            yield Slot(start, due)
            start = due - READY


def extra_slot(number: int) -> Slot:
    """Return the slot of the number-th hour, from 1, of the day after the last."""
    start = EXTRA_DAY + (number - 1) * HOUR
    return Slot(start, start + HOUR, (EXTRA_CALLS,) * 24)


def call_times(rng: random.Random, slot: Slot) -> Iterator[datetime]:
    """Yield the times of a slot's calls, as many in each hour as the hour has, give or take a tenth."""
    start = slot.start
    while start < slot.due - READY:
        end = min(start.replace(minute=0) + HOUR, slot.due - READY)
        share = (end - start) / HOUR
        for _ in range(round(slot.calls_by_hour[start.hour] * share * rng.uniform(0.9, 1.1))):
            yield start + timedelta(seconds=rng.randrange(int((end - start).total_seconds())))
        start = end


def records_of(seed: int, catalog: Catalog, slot: Slot) -> list[Record]:
    """Return a slot's records; as with AWS, they stand only roughly in the order of time."""
    rng = random.Random(f"{seed} {slot.due:%Y-%m-%dT%H}")
    records = [(time, draw_record(rng, catalog, slot.region, time)) for time in sorted(call_times(rng, slot))]
    for burst in BURSTS:
        for attempt in range(burst.attempts):
            time = burst.start + timedelta(seconds=attempt * burst.seconds_between)
            if slot.start <= time < slot.due - READY:
                records.append((time, guessed_sign_in(rng, catalog, slot.region, time, burst.address)))
    records.sort(key=lambda timed: timed[0] + timedelta(seconds=rng.uniform(0, 90)))
    return [record for _, record in records]


def compressed(records: list[Record]) -> bytes:
    """Return the file's content: one line of JSON, gzipped without a name or a time."""
    text = json.dumps({"Records": records}, separators=(",", ":"), ensure_ascii=False)
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text.encode())
    return buffer.getvalue()


def arguments() -> argparse.Namespace:
    """Return the command line's arguments."""
    parser = argparse.ArgumentParser(description="Make the CloudTrail example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("cloudtrail"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--files", type=int, default=BASE_FILES, help="how many files, from the first (default: 40)")
    parser.add_argument("--extra", type=int, nargs="?", const=1, metavar="N", help="write only the N-th further file")
    return parser.parse_args()


def main() -> None:
    """Write the files and print how many records they hold."""
    options = arguments()
    catalog = load_catalog()
    slots = [extra_slot(options.extra)] if options.extra else list(base_slots())[: options.files]
    records = [(slot, records_of(options.seed, catalog, slot)) for slot in slots]
    write_in_order([(options.out / slot.path, compressed(rows)) for slot, rows in records])
    print(f"{len(records)} files, {sum(len(rows) for _, rows in records)} records in {options.out}")


if __name__ == "__main__":
    main()
