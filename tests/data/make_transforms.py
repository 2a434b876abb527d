"""Makes the transforms example: nested readings of weather stations in 2 files, and messages whose values are text.

    make_transforms.py [--out DIR] [--seed N]

readings/ holds structs, arrays, maps, and arrays of structs; messages/ a key and a text each, as a queue gives them: JSON,
of which one is cut off; reports/ lines of text. All is so small that it can be read beside the results. The same seed
gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path
from typing import Any

from ordered_files import write_in_order

STATIONS = (
    ("harbour", {"city": "Boston", "at": {"lat": 42.36, "lon": -71.05}}),
    ("airport", {"city": "Newark", "at": {"lat": 40.69, "lon": -74.17}}),
    ("summit", {"city": "Hartford", "at": {"lat": 41.76, "lon": -72.67}}),
)
HOURS = (6, 12)  # one file each
ALARMS = ("gale", "frost", "fog")
SENSORS = ("wind", "rain", "sun")
REPORTS = (
    "BOS 041151Z 27012KT 9999 08/02 Q1016",
    "EWR 041151Z 31008G19KT 6000 06/M01 Q1019",
    "HFD sends no report",
)


def reading(rng: random.Random, station: str, place: dict[str, Any], hour: int) -> dict[str, Any]:
    """Return what a station measured at an hour: temperatures of the hours before, sensors by name, alarms if any."""
    temperatures = [round(rng.uniform(-3, 12), 1) for _ in range(rng.randint(2, 3))]
    sensors = {name: round(rng.uniform(0, 20), 1) for name in SENSORS if rng.random() < 0.8}
    kinds = rng.sample(ALARMS, rng.choice((0, 1, 2)))
    alarms = [{"kind": kind, "level": rng.randint(1, 3)} for kind in kinds]
    row = {"station": station, "time": f"2024-03-04T{hour:02}:00:00Z", "place": place}
    return {**row, "temperatures": temperatures, "sensors": sensors, "alarms": alarms}


def messages(rng: random.Random) -> list[dict[str, str]]:
    """Return messages whose values are JSON of one shape but for `payload`, then what is no such JSON."""
    payloads = ({"volts": 12}, ["north", "south"], "none")
    contents = [
        {"device": f"mast-{number}", "speed": rng.randint(1, 9), "payload": payload}
        for number, payload in enumerate(payloads, start=1)
    ]
    values = [json.dumps(message) for message in contents]
    return [{"key": f"k{number}", "value": value} for number, value in enumerate([*values, values[0][:25]], start=1)]


def lines(rows: list[dict[str, Any]]) -> bytes:
    """Return rows as JSON lines."""
    return "".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows).encode()


def main() -> None:
    """Write the files and print how many rows they hold."""
    parser = argparse.ArgumentParser(description="Make the transforms example's files.")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("transforms"), help="folder to write to")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    files = []
    for hour in HOURS:
        rows = [reading(rng, station, place, hour) for station, place in STATIONS]
        files.append((options.out / "readings" / f"readings-20240304T{hour:02}00Z.json", lines(rows)))
    files.append((options.out / "messages" / "messages.json", lines(messages(rng))))
    files.append((options.out / "reports" / "reports.txt", "".join(f"{report}\n" for report in REPORTS).encode()))
    write_in_order(files)
    print(f"{len(files)} files in {options.out}")


if __name__ == "__main__":
    main()
