"""The journal of a project as runs write it, and its history."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks.make_history import batch_line, entry, iso
from sqlstream.app.observe.record import journal_files
from sqlstream.history.store import Bound, History

NOW = 1_795_000_000.0
"""The time of the first line (seconds since 1970)."""

CHANCE = random.Random(1)


def batch_text(batch: int, query: int = 1, run: str = "r1") -> str:
    """Returns the line of a batch, one minute after the one before."""
    line = batch_line(query, batch, NOW + 60 * batch, CHANCE)
    fields = {"time": iso(NOW + 60 * batch), "event": "batch", "invocation_id": run}
    return json.dumps({**fields, **line, "query": entry(query, line)})


def event_text(event: str, at: float = NOW, run: str = "r1", **fields: Any) -> str:
    """Returns the line of another event."""
    return json.dumps({"time": iso(at), "event": event, "invocation_id": run, **fields})


def write(logs: Path, *lines: str) -> None:
    """Appends lines to the journal."""
    logs.mkdir(exist_ok=True)
    with (logs / "events.jsonl").open("a") as file:
        file.writelines(line + "\n" for line in lines)


@contextmanager
def history_of(logs: Path, days: int = 100_000, batches: int = 1_000_000) -> Iterator[History]:
    """Opens the history of a project, by default without a limit of days."""
    history = History(logs, journal_files(logs), Bound(batches, days, days, days))
    try:
        yield history
    finally:
        history.close()
