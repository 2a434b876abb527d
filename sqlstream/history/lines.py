"""The journal: its new lines since the last time, and what each says as plain values. Lines in another form are
ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from sqlstream.figures import LAG_COLUMNS
from sqlstream.history.schema import KEPT
from sqlstream.state.runs.progress import BatchProgress, stored_batch

BATCH, LAG = "batch", "lag"
RUN_EVENTS = frozenset({"run_began", "run_loaded", "run_started", "run_ended"})
QUERY_EVENTS = {
    "query_started": "started",
    "query_silent": "silent",
    "query_restarting": "failed",
    "query_restarted": "restarted",
    "query_ended": "ended",
    "alert": "alert",
}
"""The events of queries in the journal, and their kinds in the history. A query that fails for good is `ended`."""

PROGRESS_KEYS = tuple(BatchProgress.__dataclass_fields__)
"""The fields of a batch's progress in the journal."""

CHUNK_BYTES = 4_000_000
"""The amount of text to read at once: about 1,500 lines, which become one transaction."""

HEAD_BYTES = 1 << 20
"""A longer first line does not identify a file."""

DIGEST_BYTES = 16

FileState = tuple[int, int, int]


@dataclass(frozen=True)
class BatchRow:
    """A batch of the query of `model`: the columns of `BATCH_COLUMNS` from `at_ms` on, without `run`."""

    model: str
    at_ms: int
    batch_id: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class EventRow:
    """Something that happened to the query of `model`. `detail` is JSON without what every line repeats."""

    model: str
    at_ms: int
    kind: str
    detail: str


@dataclass(frozen=True)
class LagRow:
    """What the query of `model` had not read at `at_ms`, after the batch `batch_id`, by column of the batch."""

    model: str
    at_ms: int
    batch_id: int
    values: Mapping[str, int]


@dataclass
class RunLines:
    """What a part of the journal says about one run. `facts` are new values of columns of `runs`, `entries` the newest
    entry of each query by model, with its time.
    """

    invocation: str
    began_at: str
    heard_at: str
    facts: dict[str, Any] = field(default_factory=dict)
    batches: list[BatchRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    lags: list[LagRow] = field(default_factory=list)
    entries: dict[str, tuple[str, dict[str, Any]]] = field(default_factory=dict)


def read_lines(lines: Iterable[bytes]) -> dict[str, RunLines]:
    """Returns what `lines` say about each run, by the id of its invocation."""
    runs: dict[str, RunLines] = {}
    for text in lines:
        try:
            line = json.loads(text)
        except ValueError:
            continue  # it is torn
        if not isinstance(line, dict):
            continue
        invocation, time = line.get("invocation_id"), line.get("time")
        if not isinstance(invocation, str) or not isinstance(time, str):
            continue
        run = runs.get(invocation)
        if run is None:
            run = runs[invocation] = RunLines(invocation, time, time)
        run.heard_at = max(run.heard_at, time)
        try:
            _add(run, line, time)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # a line of another version
    return runs


def _add(run: RunLines, line: Mapping[str, Any], time: str) -> None:
    event, model = line.get("event"), line.get("model")
    if event in RUN_EVENTS:
        run.facts.update(_run_facts(line))
    entry = line.get("query")
    if isinstance(entry, dict) and isinstance(entry.get("model"), str):
        _add_entry(run, entry["model"], {**entry}, line, time)
    if isinstance(model, str) and event == BATCH:
        run.batches.append(batch_row(model, line))
    elif isinstance(model, str) and event == LAG:
        values = {LAG_COLUMNS[unit]: int(count) for unit, count in line["lag"].items()}
        run.lags.append(LagRow(model, _ms(time), int(line["batch_id"]), values))
    elif isinstance(model, str) and event in QUERY_EVENTS:
        detail = {key: value for key, value in line.items() if key not in _REPEATED}
        run.events.append(EventRow(model, _ms(time), QUERY_EVENTS[str(event)], _json(detail)))


_REPEATED = frozenset({"time", "event", "invocation_id", "model", "query"})


def _run_facts(line: Mapping[str, Any]) -> dict[str, Any]:
    names = ("target", "pid", "process_start", "sqlstream_version", "spark_version")
    found = {name: line[name] for name in names if line.get(name) is not None}
    if line["event"] == "run_ended":
        found["succeeded"] = int(line.get("succeeded") is True)
    return found


def _add_entry(run: RunLines, model: str, entry: dict[str, Any], line: Mapping[str, Any], time: str) -> None:
    """Adds the newest entry of a query. The line of a batch has the progress itself, other lines only in the entry."""
    if line.get("event") == BATCH:
        entry["progress"] = {key: line.get(key) for key in PROGRESS_KEYS}
    elif entry.get("progress") is None and model in run.entries:
        entry["progress"] = run.entries[model][1].get("progress")
    run.entries[model] = (time, entry)


def batch_row(model: str, line: Mapping[str, Any]) -> BatchRow:
    """Returns the columns of a batch from its line in the journal. Raises: KeyError, TypeError, ValueError."""
    batch, entry = stored_batch(line), line.get("query") or {}
    values = (entry.get(each.name) if each.of_query else getattr(batch, each.name) for each in KEPT)
    found = (
        _ms(value) if value and each.type == "timestamp" else value for each, value in zip(KEPT, values, strict=True)
    )
    sources = [[each.name, each.start_offset, each.end_offset, each.rows_in] for each in batch.sources]
    return BatchRow(model, _ms(batch.started_at), batch.batch_id, (*found, _json(sources)))


def _ms(time: str) -> int:
    """Returns a time in ISO 8601 (UTC if it has no zone) as milliseconds since 1970."""
    found = datetime.fromisoformat(time)
    return round((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


def _json(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


@dataclass(frozen=True)
class JournalPart:
    """Complete lines of one journal file, which `head` identifies: the bytes from `start` to `end`."""

    head: bytes
    start: int
    end: int
    lines: Sequence[bytes]


class JournalReader:
    """Reads new lines of the journal files at `paths`, the oldest first.

    A file is identified by its first line, so a rename or a copy does not matter, and an inode that the file system
    uses again is not a problem. Remembers the states of files, to skip those without changes. Reads `paths` in each
    call: the caller can change it.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._done: set[FileState] = set()

    def has_news(self) -> bool:
        """Returns whether a file has changed since it was read to its end."""
        return any(state is not None and state not in self._done for state in map(_state, self._paths))

    def parts(self, offsets: Mapping[bytes, int]) -> Iterator[JournalPart]:
        """Yields the complete lines behind `offsets`, which has how far each file was read, by head. A last line
        without a newline is not complete: it may still be written.
        """
        seen: set[bytes] = set()
        states: set[FileState] = set()
        for path in self._paths:
            try:
                with path.open("rb") as file:
                    state = _state_of(os.fstat(file.fileno()))
                    if state not in self._done:
                        head = _head(file.readline(HEAD_BYTES))
                        if head is not None and head not in seen:
                            seen.add(head)
                            yield from _read(file, head, offsets.get(head, 0))
                    states.add(state)
            except OSError:
                continue
        self._done = states

    def forget(self) -> None:
        """Makes the next call of `parts` look at all files again."""
        self._done = set()


def _read(file: BinaryIO, head: bytes, offset: int) -> Iterator[JournalPart]:
    file.seek(offset)
    rest = b""
    while chunk := file.read(CHUNK_BYTES):
        text, newline, rest = (rest + chunk).rpartition(b"\n")
        if newline:
            start, offset = offset, offset + len(text) + 1
            yield JournalPart(head, start, offset, text.split(b"\n"))


def _state(path: Path) -> FileState | None:
    try:
        return _state_of(path.stat())
    except OSError:
        return None


def _state_of(status: os.stat_result) -> FileState:
    return status.st_ino, status.st_size, status.st_mtime_ns


def _head(line: bytes) -> bytes | None:
    """Returns what identifies the file with this first line, None while the line is not complete."""
    return hashlib.sha256(line).digest()[:DIGEST_BYTES] if line.endswith(b"\n") else None
