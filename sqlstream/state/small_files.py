"""Whether the batches of a file sink write more and smaller files than they need to, and whether the sink's log of them
has become long, according to this log.

Each task of Spark writes a file for each folder of which it has rows. A reader opens every one of these files, and each
tenth batch writes the list of all files again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from sqlstream.errors import Finding, Severity
from sqlstream.location import Location
from sqlstream.numbers import bytes_text, long_seconds_text
from sqlstream.state.batch_logs import SINK_LOG
from sqlstream.state.checkpoints import ListedFiles, read_log
from sqlstream.state.merged_files import FORMATS, last_compact

RECENT, LEAST = 10, 5
"""The batches with files that count: the newest ones, and the fewest that are enough for an opinion."""

ONE_FILE = 1.05
"""Below this average, a batch writes one file to each folder."""

SMALL = 1_000_000
"""Files below this size (bytes, on average) are small: reading them takes less time than opening them."""

LONG_LOG_BYTES = 10_000_000
"""From this size on (bytes), the log of a file sink is long: it lists about 40,000 files, at 250 bytes each."""

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

    @property
    def text(self) -> str:
        """What the batches write."""
        files = "1 file" if self.files < ONE_FILE else f"{self.files:.1f} files".replace(".0 ", " ")
        every = long_seconds_text(self.seconds)
        return f"a batch adds {files} of {bytes_text(self.size)} to each folder, every {every}"


@dataclass(frozen=True)
class LongLog:
    """The log of a sink has `bytes`, which each tenth batch reads and writes again."""

    sink: str
    bytes: int

    @property
    def text(self) -> str:
        """What is slow."""
        return f"each tenth batch reads and writes its list of files again, which has {bytes_text(self.bytes)}"


@dataclass(frozen=True)
class FilesOfSink:
    """What can be improved about the files of a sink, None if nothing. `can_merge`: `maintain` can merge files of the
    format.
    """

    small: SmallFiles | None
    log: LongLog | None
    can_merge: bool

    def findings(self, model: str, location: Location) -> Iterator[Finding]:
        """Yields a warning for each problem of the sink, which is declared at `location`, as `model` uses it."""
        merge = f"`sqlstream maintain --merge-files --select {model}`"
        if self.small is not None:
            what = f"`{model}` writes small files to sink `{self.small.sink}`"
            why = f"{self.small.text}, and readers open each of them"
            fix = f"{self.small.advice}; {merge} merges those that are there" if self.can_merge else self.small.advice
            yield Finding("small-files", what, why, fix, location, Severity.WARNING)
        if self.log is not None:
            what = f"sink `{self.log.sink}` has a long list of files of `{model}`"
            refresh = f"begin a new output with `sqlstream run --full-refresh --select {model}`"
            fix = f"merge the files with {merge}, or {refresh}" if self.can_merge else refresh
            yield Finding("small-files", what, self.log.text, fix, location, Severity.WARNING)


def files_of_sink(sink: str, format_name: str, files: ListedFiles, folder: str) -> FilesOfSink:
    """Returns what can be improved about the files of a sink in `folder`. Raises: OSError, Spark's errors."""
    log = read_log(files, f"{folder}/{SINK_LOG}", recent_entries)
    torn = log.torn()
    small = small_files(sink, [log.texts[number] for number in sorted(log.texts) if number not in torn])
    number = last_compact(log)
    sizes = {} if number is None else {file.name: file.size for file in files.files(log.folder)}
    size = sizes.get(log.names[number], 0) if number is not None else 0
    long = LongLog(sink, size) if size > LONG_LOG_BYTES else None
    return FilesOfSink(small, long, format_name.lower() in FORMATS)


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
