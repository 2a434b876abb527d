"""Makes the nest example: what a home hub sends about its four cameras, one JSON message every 20 seconds for 12 hours.

    make_nest.py [--out DIR] [--seed N]

A message has a map of cameras, each with its last event. Camera 9 is not in the seed of device locations. The messages are
lines of text in 6 gzipped files of two hours each, as a recording of the topic. The same seed gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ordered_files import write_in_order

START = datetime(2024, 3, 4, 8, tzinfo=UTC)
BETWEEN_MESSAGES = timedelta(seconds=20)
MESSAGES_IN_A_FILE = 360
FILES = 6
PERSON_RATES = {"camera-1": 0.65, "camera-2": 0.55, "camera-3": 0.3, "camera-4": 0.1, "camera-9": 0.2}
"""How often the last event of a camera shows a person: two of the zip codes get more than 1,000 sightings."""
NAMES = {"camera-1": "Gate", "camera-2": "Ramp", "camera-3": "Yard", "camera-4": "Lobby", "camera-9": "Spare"}


def camera(rng: random.Random, device: str, at: datetime) -> dict[str, Any]:
    """Return the state of a camera at a time, with the event that it saw last."""
    began = at - timedelta(milliseconds=rng.randint(2_000, 19_000))
    return {
        "device_id": device,
        "name": NAMES[device],
        "is_online": rng.random() > 0.02,
        "last_event": {
            "has_person": rng.random() < PERSON_RATES[device],
            "has_motion": True,
            "has_sound": rng.random() < 0.4,
            "start_time": moment(began),
            "end_time": moment(began + timedelta(milliseconds=rng.randint(500, 1_500))),
        },
    }


def moment(at: datetime) -> str:
    """Return a time as the hub writes it: UTC with milliseconds."""
    return at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at.microsecond // 1000:03}Z"


def messages(rng: random.Random) -> list[str]:
    """Return all messages in order, each as one line of JSON."""
    lines = []
    for number in range(FILES * MESSAGES_IN_A_FILE):
        at = START + number * BETWEEN_MESSAGES
        cameras = {device: camera(rng, device, at) for device in PERSON_RATES}
        lines.append(json.dumps({"devices": {"cameras": cameras}}, separators=(",", ":")))
    return lines


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "nest", help="folder of the files")
    parser.add_argument("--seed", type=int, default=7, help="seed of the random values")
    arguments = parser.parse_args()
    lines = messages(random.Random(arguments.seed))
    files = []
    for number in range(FILES):
        at = START + number * MESSAGES_IN_A_FILE * BETWEEN_MESSAGES
        text = "\n".join(lines[number * MESSAGES_IN_A_FILE : (number + 1) * MESSAGES_IN_A_FILE]) + "\n"
        name = f"updates-{at:%Y%m%dT%H%MZ}.json.gz"
        files.append((arguments.out / name, gzip.compress(text.encode(), mtime=0)))
    write_in_order(files)


if __name__ == "__main__":
    main()
