"""Whether the batches of a file sink write more and smaller files than they need to, according to the sink's log.

Each task of Spark writes a file for each folder of which it has rows. A reader opens every one of these files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

RECENT, LEAST = 10, 5
"""The batches with files that count: the newest ones, and the fewest that are enough for an opinion."""

SMALL = 1_000_000
"""Files below this size (bytes, on average) are small: reading them takes less time than opening them."""

FREQUENT_SECONDS = 60
"""With more time between two batches, a longer trigger would delay rows for longer than it helps readers."""


@dataclass(frozen=True)
class SmallFiles:
    """The newest batches of a sink write small files: `files` to each folder and batch, each of `size` bytes, on
    average. `seconds` is the time between two batches.
    """

    sink: str
    files: float
    size: int
    seconds: float

    @property
    def advice(self) -> str:
        """What makes files larger."""
        if self.files >= 2:
            return f"set `files_per_batch: 1` in sink `{self.sink}`"
        return "larger batches or a longer trigger write fewer and larger files"


def small_files(sink: str, entries: Sequence[str]) -> SmallFiles | None:
    """Returns what is wrong with the files in the newest `entries` of the log of `sink`, of which each is one batch;
    None if nothing is, or if it is too early to say.
    """
    batches = [[json.loads(line) for line in text.split("\n")[1:] if line] for text in entries]
    batches = [files for files in batches if files]
    if len(batches) < LEAST:
        return None
    every = [file for files in batches for file in files]
    folders = sum(len({_folder(file) for file in files}) for files in batches)
    size = sum(file.get("size", 0) for file in every) // len(every)
    times = [max(file.get("modificationTime", 0) for file in files) for files in batches]
    seconds = (times[-1] - times[0]) / 1000 / (len(times) - 1)
    found = SmallFiles(sink, len(every) / folders, size, seconds)
    is_avoidable = found.files >= 2 or seconds < FREQUENT_SECONDS
    return found if size < SMALL and is_avoidable else None


def _folder(file: Mapping[str, object]) -> str:
    return str(file["path"]).rpartition("/")[0]


def recent_entries(names: Mapping[int, str]) -> list[int]:
    """Returns the numbers of the entries to read: the newest ones that Spark has not merged with earlier ones."""
    return sorted(number for number, name in names.items() if not name.endswith(".compact"))[-RECENT:]
