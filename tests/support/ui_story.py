"""What happened to one query, written as the journal of a project for tests of its charts."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.make_history import batch_line, entry, iso, name_of, write_project
from sqlstream.spark.storage.processes import machine_id, process_start
from tests.support.ui_project import page_of

ALIVE = {"pid": os.getpid(), "process_start": process_start(os.getpid())}
GONE = {"pid": 999_999_999, "process_start": f"{machine_id()}/0"}


def failure(batch: int, text: str = "n/a") -> dict[str, Any]:
    """Returns the finding of a query that failed in a batch."""
    what = f"the query of `orders_000` failed in batch {batch}: {text}"
    return {"code": "query-failed", "message": what, "why": "a value is not a number", "severity": "error"}


@dataclass
class Story:
    """The story of the query `number` until now. Times are minutes before now; `clock` is now."""

    folder: Path
    number: int = 0
    clock: float = field(default_factory=time.time)
    chance: random.Random = field(default_factory=lambda: random.Random(3))

    def __post_init__(self) -> None:
        """Writes the project."""
        write_project(self.folder, 3)
        (self.folder / "logs").mkdir()

    @property
    def model(self) -> str:
        """The name of the query."""
        return name_of(self.number)

    def line(self, run: str, ago: float, event: str, **fields: Any) -> None:
        """Appends a line to the journal."""
        head = {"time": iso(self.clock - 60 * ago), "invocation_id": run, "event": event}
        with (self.folder / "logs/events.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({**head, **fields}) + "\n")

    def happens(self, run: str, ago: float, event: str, changes: dict[str, Any] | None = None, **fields: Any) -> None:
        """Writes an event of the query, with changes of its entry."""
        line = batch_line(self.number, 0, self.clock - 60 * ago, self.chance)
        found = {**entry(self.number, line), **(changes or {})}
        self.line(run, ago, event, model=self.model, query=found, **fields)

    def start(self, run: str, ago: float, *, is_alive: bool = False, **changes: Any) -> None:
        """Begins a run, in this process or in one that is gone, and starts the query."""
        self.line(run, ago, "run_began", **(ALIVE if is_alive else GONE), target="local")
        self.line(run, ago, "run_loaded", target="local")
        started = {"started_at": iso(self.clock - 60 * ago), "batches": 0, **changes}
        self.happens(run, ago, "query_started", started)

    def batch(self, run: str, ago: float, number: int, changes: dict[str, Any] | None = None, **fields: Any) -> None:
        """Writes a batch that began `ago` minutes before now, with other values, and changes of the query's entry."""
        line = {**batch_line(self.number, number, self.clock - 60 * ago, self.chance), **fields}
        found = {**entry(self.number, line), **(changes or {})}
        ended = ago - line["duration_ms"] / 60_000
        self.line(run, ended, "batch", **line, query=found)

    def batches(
        self, run: str, since: float, until: float, first: int = 0, seconds: float = 30.0, **fields: Any
    ) -> int:
        """Writes a batch every so many seconds; returns the number of the next one."""
        number, ago = first, since
        while ago > until:
            self.batch(run, ago, number, **fields)
            number, ago = number + 1, ago - seconds / 60
        return number

    def lag(self, run: str, ago: float, batch: int, **lag: int) -> None:
        """Writes what was not read after a batch, by unit."""
        self.line(run, ago, "lag", model=self.model, batch_id=batch, lag=lag)

    def end(self, run: str, ago: float, error: dict[str, Any] | None = None) -> None:
        """Ends the query and its run."""
        status = "error" if error else "stopped"
        self.happens(run, ago, "query_ended", {"status": status, "error": error}, error=error, status=status)
        self.line(run, ago, "run_ended", succeeded=error is None)

    @contextmanager
    def page(self) -> Iterator[str]:
        """Serves the page, and yields the address of the charts of the query."""
        with page_of(self.folder) as url:
            yield f"{url}#/query/{self.model}/charts"


def eventful(folder: Path) -> Story:
    """Returns a query that stopped for 14 minutes, failed, restarted after two minutes, was killed, and runs now."""
    story = Story(folder)
    story.start("first", 58)
    number = story.batches("first", 58, 46)
    story.end("first", 46)
    story.start("second", 32)
    number = story.batches("second", 32, 24, number)
    story.happens("second", 24, "query_restarting", attempt=1, attempts=5, delay_seconds=120.0, finding=failure(number))
    story.happens("second", 22, "query_restarted", restarts=1)
    number = story.batches("second", 22, 16, number)
    story.start("third", 11, is_alive=True)
    story.batches("third", 11, 0.5, number)
    return story
