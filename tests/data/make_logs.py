"""Makes the logs example: lines of three services as a collector delivers them, in 6 files from 23:30 to 00:30.

    make_logs.py [--out DIR] [--seed N]

A row is a line with its metadata: host, service, file, and the offset of the line in that file, which together name
the line. The collector delivers at least once: it sends some lines again in the same file or in the next, under ten
minutes later, and a few of them after forty minutes, behind a watermark of ten. Two services log JSON and one Log4j
lines; among them are truncated JSON, stack traces and other text. The same seed gives the same bytes.
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

START = datetime(2024, 3, 4, 23, 30, tzinfo=UTC)
TEN_MINUTES = timedelta(minutes=10)
FILES = 6
END = START + FILES * TEN_MINUTES
SECONDS_BETWEEN_LINES = (25, 90)
AGAIN_RATE = 0.10  # of all lines: sent twice in the same file
AGAIN_NEXT_RATE = 0.12  # of the lines of a file's last eight minutes: sent again in the next file
AGAIN_MUCH_LATER_RATE = 0.10  # of the lines of the first two files: sent again four files later
CUT_OFF_RATE = 0.05  # of the JSON lines
SERVICES = (("web-1", "gateway", "json"), ("web-2", "orders", "json"), ("pay-1", "payments", "log4j"))
LEVELS = ("DEBUG", "INFO", "INFO", "INFO", "WARN", "ERROR")
MESSAGES = {
    "gateway": ("GET /orders", "POST /orders", "GET /health", "upstream timed out"),
    "orders": ("order accepted", "order priced", "stock is low", "order refused"),
    "payments": ("card charged", "card declined", "refund sent", "bank did not answer"),
}
TRACE = ("java.net.SocketTimeoutException: Read timed out", "\tat com.shop.payments.Bank.call(Bank.java:{line})")


@dataclass(frozen=True)
class Line:
    """A line of a log with its place, when the collector read it, and the file in which it is delivered first."""

    host: str
    service: str
    offset: int
    collected_at: datetime
    body: str

    @property
    def delivered(self) -> int:
        """Return the number of the file in which the line comes first."""
        return (self.collected_at - START) // TEN_MINUTES

    def row(self) -> str:
        """Return the line with its metadata, as one line of JSON."""
        metadata = {"host": self.host, "service": self.service, "file": f"/var/log/{self.service}.log"}
        row = {
            "metadata": {**metadata, "offset": self.offset},
            "collected_at": iso(self.collected_at),
            "body": self.body,
        }
        return json.dumps(row, separators=(",", ":")) + "\n"


def iso(time: datetime) -> str:
    """Return a time as 2024-03-04T23:30:12.345Z."""
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def json_body(rng: random.Random, service: str, time: datetime) -> str:
    """Return an entry as JSON, now and then cut off as by a full disk."""
    entry = {
        "time": iso(time),
        "level": rng.choice(LEVELS),
        "logger": f"shop.{service}",
        "message": rng.choice(MESSAGES[service]),
        "millis": rng.randint(1, 900),
    }
    text = json.dumps(entry, separators=(",", ":"))
    return text[: rng.randint(20, 60)] if rng.random() < CUT_OFF_RATE else text


def log4j_bodies(rng: random.Random, service: str, time: datetime) -> Iterator[str]:
    """Yield a Log4j line, and after some of the errors the lines of a stack trace."""
    level, at = rng.choice(LEVELS), time.strftime("%Y-%m-%d %H:%M:%S,") + f"{time.microsecond // 1000:03}"
    yield f"{at} {level:<5} [worker-{rng.randint(1, 4)}] com.shop.{service}.Bank - {rng.choice(MESSAGES[service])}"
    if level == "ERROR" and rng.random() < 0.5:
        yield from (text.format(line=rng.randint(20, 90)) for text in TRACE)


def lines_of(seed: int, host: str, service: str, form: str) -> Iterator[Line]:
    """Yield the lines of one service in the order of time; lines of one moment follow each other by offset."""
    rng = random.Random(f"{seed} {service}")
    offset, time = 0, START + timedelta(seconds=rng.randint(0, 30))
    while time < END:
        bodies = [json_body(rng, service, time)] if form == "json" else list(log4j_bodies(rng, service, time))
        for body in bodies:
            yield Line(host, service, offset, time, body)
            offset += len(body) + 1
        time += timedelta(seconds=rng.randint(*SECONDS_BETWEEN_LINES), milliseconds=rng.randrange(1000))


def deliveries(rng: random.Random, line: Line) -> Iterator[int]:
    """Yield the numbers of the files that contain a line, in their order."""
    file = line.delivered
    yield file
    if rng.random() < AGAIN_RATE:
        yield file
    if line.collected_at - START - file * TEN_MINUTES >= timedelta(minutes=2) and rng.random() < AGAIN_NEXT_RATE:
        yield file + 1
    if file < FILES - 4 and rng.random() < AGAIN_MUCH_LATER_RATE:
        yield file + 4


def main() -> None:
    """Write the files and print how many rows they hold."""
    parser = argparse.ArgumentParser(description="Make the logs example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("logs"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    lines = [line for service in SERVICES for line in lines_of(options.seed, *service)]
    lines.sort(key=lambda line: (line.collected_at, line.host, line.offset))
    rng = random.Random(options.seed)
    contents: list[list[str]] = [[] for _ in range(FILES)]
    for line in lines:
        for file in deliveries(rng, line):
            if file < FILES:
                contents[file].append(line.row())
    paths = [options.out / f"lines-{START + number * TEN_MINUTES:%Y%m%dT%H%M}Z.json" for number in range(FILES)]
    write_in_order([(path, "".join(rows).encode()) for path, rows in zip(paths, contents, strict=True)])
    print(f"{FILES} files, {sum(map(len, contents))} rows of {len(lines)} lines in {options.out}")


if __name__ == "__main__":
    main()
