"""Projects with generated runs for tests of the live page, served on a free port, without Spark."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.make_history import History, LiveRun, entry, make_history, name_of, write_project
from sqlstream.app.request import ProjectRequest, UiRequest
from sqlstream.app.session.listening import listen
from sqlstream.app.ui.serve import serving
from sqlstream.spark.storage.processes import machine_id, process_start
from sqlstream.state.ledger import SourceUse
from tests.support.identities import STATEFUL, ledger_of

QUERIES, BATCHES, DAYS = 16, 1_600, 2
"""A small project: query 3 has failed, 7 emits nothing, 11 restarted, 13 has late rows (see make_history.py)."""

NO_INPUT = {
    "cause": "no_input",
    "text": "no rows have arrived from payments.events since it started",
    "due_event": None,
}


class Run(LiveRun):
    """A run of this process that writes the journal."""

    def changed_batch(self, number: int, progress: dict[str, Any], **changes: Any) -> None:
        """Writes a batch with other values: `progress` of the batch, `changes` of the query."""
        line = {**self._next(number), **progress}
        self._append([("batch", {**line, "query": {**entry(number, line), **changes}})])

    def begin_query(self, number: int, **changes: Any) -> None:
        """Writes another run of this process, with the start of a query that has had no batch."""
        process = {"pid": os.getpid(), "process_start": process_start(os.getpid()), "target": "local"}
        line = self._next(number)
        nothing = {"batches": 0, "rows_in": 0, "rows_out": 0, "newest_event": None, "newest_event_at": None}
        started = {"model": line["model"], "query": {**entry(number, line), **nothing, **changes}}
        was, self._id = self._id, "another"
        self._append([("run_began", process), ("run_loaded", {"target": "local"}), ("query_started", started)])
        self._id = was

    def kill(self, invocation: str, numbers: Sequence[int]) -> None:
        """Writes another run with a batch of some queries, whose process is gone."""
        was, self._id = self._id, invocation
        self._append([("run_began", {"pid": 999_999_999, "process_start": f"{machine_id()}/0", "target": "local"})])
        self._append([("run_loaded", {"target": "local"})])
        for number in numbers:
            self.batch(number)
        self._id = was

    def refuse(self, invocation: str) -> None:
        """Writes another run that is refused before any query starts."""
        self._id = invocation
        self._append([("run_began", {"pid": 1, "process_start": "x", "target": "local"})])
        self._append([("run_ended", {"succeeded": False})])

    def event(self, kind: str, number: int, detail: dict[str, Any], **changes: Any) -> None:
        """Writes an event of a query, with changes of its entry."""
        line = self._next(number)
        self._append([(kind, {"model": line["model"], **detail, "query": {**entry(number, line), **changes}})])


@dataclass(frozen=True)
class Served:
    """A project with its page at `url`; `run` is alive."""

    url: str
    folder: Path
    run: Run


def generated(folder: Path, queries: int = QUERIES, batches: int = BATCHES) -> Run:
    """Writes a project with a history, and begins a run."""
    history = History(queries, batches, DAYS, time.time())
    make_history(folder, history)
    run = Run(folder, history)
    run.begin()
    return run


@contextmanager
def page_of(folder: Path, port: int = 0) -> Iterator[str]:
    """Serves the page of a project, and yields its URL."""
    with serving(listen(UiRequest(port=port)), ProjectRequest(folder)) as url:
        yield url


@contextmanager
def served_project(folder: Path, queries: int = QUERIES, batches: int = BATCHES) -> Iterator[Served]:
    """Serves the page of a generated project, whose sixth query has rows to show, and the first a unit test."""
    run = generated(folder, queries, batches)
    add_details(folder, run)
    with page_of(folder) as url:
        yield Served(url, folder, run)
    run.end()


def add_details(folder: Path, run: Run) -> None:
    """Adds a unit test with a failed result, descriptions, an output with rows, and an alert."""
    (folder / "models" / "orders" / "orders.yml").write_text(DESCRIBED, encoding="utf-8")
    result = {
        "model": "orders_000",
        "status": "failed",
        "at": "2026-01-02T03:04:05Z",
        "seconds": 1.25,
        "message": "row 1: events is 2, expected 3",
    }
    (folder / "target").mkdir(exist_ok=True)
    (folder / "target" / "test_results.json").write_text(json.dumps({"results": {"orders_000.counts_events": result}}))
    output = folder / "corrupt"
    output.mkdir()
    (output / "part-0.json").write_text('{"record": "{broken", "reason": "not JSON", "source": "payments.events"}\n')


DESCRIBED = """
version: 2
models:
  - name: orders_000
    description: Orders per minute and kind.
    columns:
      - {name: events, data_type: bigint, description: Number of orders}
unit_tests:
  - name: counts_events
    model: orders_000
    given:
      - input: ref('orders_clean')
        rows: [{id: a, kind: new, amount: 1.0, at: "2024-01-01 00:00:30"}]
    expect:
      rows: [{kind: new, events: 1, amount: 1.0}]
"""


def begin_batch(folder: Path, number: int, seconds: float, files: int) -> None:
    """Writes the checkpoint of a query whose first batch began some seconds ago, and files that it has not read."""
    version = folder / f".sqlstream/local/queries/{name_of(number)}/v{1 + number % 3}"
    offsets = version / "checkpoint/offsets/0"
    offsets.parent.mkdir(parents=True)
    offsets.write_text('v1\n{"batchWatermarkMs":0}\n{"logOffset":0}')
    at = time.time() - seconds
    os.utime(offsets, (at, at))
    if version.name != "v1":
        (version.parent / "versions.json").write_text(json.dumps({"current": int(version.name[1:])}))
    source = SourceUse("payments__events", "payments.events", None, path=str(folder / "data/payments"))
    (version / "ledger.json").write_text(ledger_of(replace(STATEFUL, sources=(source,))).to_json())
    (folder / "data/payments").mkdir(parents=True, exist_ok=True)
    for file in range(files):
        (folder / f"data/payments/{file}.json").write_text("{}")


def empty_project(folder: Path) -> None:
    """Writes a project that has not run."""
    write_project(folder, 2)


def free_port() -> int:
    """Returns a port on which nothing listens now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
