"""Generates a project with many queries and a history of their batches, to measure and to test `sqlstream ui`.

    python benchmarks/make_history.py FOLDER [--queries 200] [--batches 1000000] [--days 30] [--live RATE]

Batches go into FOLDER/logs/history.sqlite through the store's own API; the newest of each query are lines of the
journal.
With `--live` the process is a run: it appends RATE batches per second to the journal until Ctrl-C. Some queries have
failed, restart, emit nothing, have late rows or write corrupt records.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlstream.history.database import open_file, transaction
from sqlstream.history.ingest import write_runs
from sqlstream.history.lines import EventRow, RunLines, batch_row
from sqlstream.history.store import HISTORY, HISTORY_FILE
from sqlstream.spark.storage.processes import process_start

DOMAINS = ("orders", "payments", "shipping", "clicks", "security")
CHUNK = 20_000
"""Batches per transaction."""

RUN_SECONDS = 3_600.0
"""How long each query has run in the live run."""

FAILED, SILENT, RESTARTED, LATE = 3, 7, 11, 13
"""Queries with these numbers (modulo 40) have failed, emit nothing, restart now and then, or have late rows."""

FAILED_AGO = 720.0
"""How many seconds ago queries have failed."""

SILENCE = {"cause": "watermark", "text": "3 batches read rows, but the watermark has not reached the end of a window"}


@dataclass(frozen=True)
class History:
    """What to generate. Times are seconds since 1970."""

    queries: int
    batches: int
    days: int
    now: float

    @property
    def per_query(self) -> int:
        """The number of batches of each query."""
        return max(self.batches // self.queries, 1)

    @property
    def spacing(self) -> float:
        """The seconds between two batches of a query."""
        return self.days * 86_400 / self.per_query


def name_of(number: int) -> str:
    """Returns the name of the model of a query."""
    return f"{DOMAINS[number % len(DOMAINS)]}_{number:03}"


def write_project(folder: Path, queries: int) -> None:
    """Writes a project whose queries read a source or a view each."""
    files = {
        "project.yml": "name: observed\nversion: 1.0.0\ndefault_target: local\ntargets:\n"
        "  local: {master: 'local[2]', storage: .sqlstream/local, max_streams: 1000}\n"
        "  prod: {master: 'local[2]', storage: .sqlstream/prod, max_streams: 1000}\n",
        "sinks.yml": "version: 2\nsinks:\n  - {name: lake, format: parquet, path: '{{ model.name }}'}\n"
        "  - {name: corrupt, format: json, path: '{{ model.name }}'}\n",
        "sources.yml": "version: 2\nsources:\n" + "".join(_source(domain) for domain in DOMAINS),
    }
    for domain in DOMAINS:
        files[f"models/{domain}/{domain}_clean.sql"] = (
            f"select id, kind, cast(amount as double) as amount, at from {{{{ source('{domain}', 'events') }}}}\n"
        )
    for number in range(queries):
        domain, name = DOMAINS[number % len(DOMAINS)], name_of(number)
        files[f"models/{domain}/{name}.sql"] = _model(domain, number)
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def _source(domain: str) -> str:
    quarantine = "        on_corrupt: quarantine\n        quarantine_sink: corrupt\n" if domain == "payments" else ""
    return (
        f"  - name: {domain}\n    tables:\n      - name: events\n        description: Events of {domain}\n"
        f"        format: json\n        path: data/{domain}\n{quarantine}"
        "        schema: id string, kind string, amount string, at timestamp\n"
    )


def _model(domain: str, number: int) -> str:
    config = "{{ config(sink='lake', trigger='30 seconds', tags=['" + domain + "']) }}\n"
    if number % 2:
        lines = ("select id, kind, amount", f"from {{{{ ref('{domain}_clean') }}}}", f"where amount > {number}", "")
        return config + "\n".join(lines)
    return config + (
        "select window.start as minute, kind, count(*) as events, sum(amount) as amount\n"
        f"from {{{{ ref('{domain}_clean') }}}} WATERMARK at DELAY OF INTERVAL 10 MINUTES\n"
        "group by window(at, '1 minute'), kind\n"
    )


def error_of(number: int) -> dict[str, Any]:
    """Returns the failure of a query: at its last line, or in its view if it has restarted since."""
    domain, name = DOMAINS[number % len(DOMAINS)], name_of(number)
    file, line, column = (f"{domain}_clean", 1, 18) if number % 40 == RESTARTED else (name, 4, 7)
    return {
        "code": "query-failed",
        "message": f"the query of `{name}` failed in batch 41",
        "why": "Spark reports: The value 'n/a' of the type STRING cannot be cast to DOUBLE because it is malformed",
        "fix": "use try_cast(amount as double)",
        "severity": "error",
        "location": {"path": f"models/{domain}/{file}.sql", "line": line, "column": column},
        "failure": {
            "batch": 41,
            "file": f"/data/{domain}/2024-03-04 12.json",
            "position": None,
            "row": '{"id": "a", "kind": "new", "amount": "n/a"}',
            "value": "'n/a'",
            "sql": "cast(amount as double)",
        },
    }


def iso(seconds: float) -> str:
    """Returns a time in ISO 8601."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def batch_line(number: int, batch: int, at: float, chance: random.Random) -> dict[str, Any]:
    """Returns the fields of a batch as in the journal, without those of every line."""
    day = math.sin(at / 86_400 * 2 * math.pi)
    rows = max(int((1_000 + 20 * number) * (1.2 + day) * chance.uniform(0.8, 1.2)), 0)
    duration = int(300 + rows / 10 + (8_000 if chance.random() < 0.002 else chance.uniform(0, 200)))
    is_stateful = number % 2 == 0
    late = int(rows * 0.01) if number % 40 == LATE else 0
    domain = DOMAINS[number % len(DOMAINS)]
    state = {
        "operators": ["stateStoreSave"],
        "rows": 10_000 + 10 * (batch % 1_000),
        "updated_rows": rows // 50,
        "removed_rows": rows // 60,
        "memory_bytes": 4_000_000 + 1_000 * (batch % 1_000),
        "late_rows": late,
    }
    return {
        "model": name_of(number),
        "batch_id": batch,
        "started_at": iso(at),
        "duration_ms": duration,
        "rows_in": rows,
        "rows_out": 0 if number % 40 == SILENT else rows // (50 if is_stateful else 2),
        "watermark": iso(at - 620) if is_stateful else None,
        "oldest_event": iso(at - 60) if is_stateful else None,
        "newest_event": iso(at - 5) if is_stateful else None,
        "input_rows_per_second": rows / 30,
        "processed_rows_per_second": rows * 1_000 / duration,
        "parts_ms": {
            "addBatch": int(duration * 0.7),
            "queryPlanning": int(duration * 0.1),
            "walCommit": int(duration * 0.08),
            "commitOffsets": int(duration * 0.06),
            "latestOffset": int(duration * 0.03),
            "triggerExecution": duration,
        },
        "state": state if is_stateful else None,
        "sources": [
            {
                "name": f"{domain}.events",
                "description": f"FileStreamSource[file:/data/{domain}]",
                "start_offset": json.dumps({"logOffset": batch - 1}),
                "end_offset": json.dumps({"logOffset": batch}),
                "rows_in": rows,
                "input_rows_per_second": rows / 30,
                "processed_rows_per_second": rows * 1_000 / duration,
            }
        ],
        "dropped_records": 0,
        "dropped_static": 0,
    }


def watermark_lag(line: dict[str, Any]) -> float | None:
    """Returns how many seconds the watermark is behind at the end of a batch."""
    return 620 + line["duration_ms"] / 1_000 if line["watermark"] else None


def entry(number: int, line: dict[str, Any], status: str = "running") -> dict[str, Any]:
    """Returns the entry of a query as in run_results.json, after the batch of `line`."""
    model, batches = line["model"], line["batch_id"] + 1
    has_failed, is_silent = number % 40 == FAILED, number % 40 == SILENT
    return {
        "unique_id": f"model.observed.{model}",
        "model": model,
        "kind": "stream",
        "status": "error" if has_failed else status,
        "batches": batches,
        "rows_in": batches * 1_500,
        "rows_out": 0 if is_silent else batches * 700,
        "late_rows": batches if number % 40 == LATE else 0,
        "dropped_records": 0,
        "restarts": 3 if number % 40 == RESTARTED else 0,
        "started_at": iso(datetime.fromisoformat(line["started_at"]).timestamp() - RUN_SECONDS),
        "duration_seconds": RUN_SECONDS,
        "sink": "lake",
        "trigger": "30 seconds",
        "output": f"/data/observed/{model}",
        "checkpoint": f"/data/observed/queries/{model}/v{1 + number % 3}/checkpoint",
        "error": error_of(number) if has_failed else None,
        "last_failure": error_of(number) if has_failed or number % 40 == RESTARTED else None,
        "failed_at": iso(time.time() - FAILED_AGO) if has_failed or number % 40 == RESTARTED else None,
        "retry": None,
        "silence": SILENCE if is_silent else None,
        "newest_event": line["newest_event"],
        "newest_event_at": line["started_at"] if line["newest_event"] else None,
        "watermark_lag_seconds": watermark_lag(line),
        "latest_rates": [50.0] * 20,
        "progress": None,
    }


def runs_of(history: History) -> Iterator[dict[str, RunLines]]:
    """Yields the history in parts, each as lines of one run: the batches in the order of time, and restarts."""
    chance = random.Random(1)  # noqa: S311 - the same history each time
    run = _new_run(history)
    for batch in range(history.per_query):
        for number in range(history.queries):
            at = history.now - 60 - history.days * 86_400 + (batch + number / history.queries) * history.spacing
            line = batch_line(number, batch, at, chance)
            line["query"] = {"watermark_lag_seconds": watermark_lag(line)}
            run.batches.append(batch_row(name_of(number), line))
            if number % 40 == RESTARTED and batch % 500 == 499:
                run.events += list(_restart(number, at))
        if len(run.batches) >= CHUNK:
            yield {run.invocation: run}
            run = _new_run(history)
    yield {run.invocation: run}


def _new_run(history: History) -> RunLines:
    began, heard = iso(history.now - history.days * 86_400), iso(history.now - 60)
    facts = {"target": "local", "succeeded": 1, "sqlstream_version": "0.1.0", "spark_version": "4.3.0"}
    return RunLines("the-run-of-the-history", began, heard, facts)


def _restart(number: int, at: float) -> Iterator[EventRow]:
    detail = json.dumps({"attempt": 1, "attempts": 5, "delay_seconds": 5.0, "finding": error_of(number)})
    yield EventRow(name_of(number), int(at * 1000), "failed", detail)
    yield EventRow(name_of(number), int(at * 1000) + 5_000, "restarted", json.dumps({"restarts": 1}))


class LiveRun:
    """A run of this process that writes the journal."""

    def __init__(self, folder: Path, history: History) -> None:
        self._journal = folder / "logs" / "events.jsonl"
        self._history = history
        self._chance = random.Random(2)  # noqa: S311
        self._batches = [history.per_query] * history.queries
        self._id = f"live-{os.getpid()}"

    def begin(self) -> None:
        """Writes the start of the run, and a batch of each query."""
        process = {"pid": os.getpid(), "process_start": process_start(os.getpid())}
        versions = {"sqlstream_version": "0.1.0", "spark_version": "4.3.0"}
        lines: list[tuple[str, dict[str, Any]]] = [
            ("run_began", {**process, "target": None}),
            ("run_loaded", {"target": "local"}),
            ("run_started", {"models": self._history.queries, **versions}),
        ]
        for number in range(self._history.queries):
            line = self._next(number)
            lines.append(("query_started", {"model": line["model"], "query": entry(number, line)}))
            lines.append(("batch", {**line, "query": entry(number, line)}))
            if number % 40 == FAILED:
                lines.append(("query_ended", {**entry(number, line), "query": entry(number, line)}))
            if number % 40 == SILENT:
                lines.append(("query_silent", {"model": line["model"], **SILENCE, "query": entry(number, line)}))
        self._append(lines)

    def end(self) -> None:
        """Writes that the run has ended."""
        self._append([("run_ended", {"succeeded": False})])

    def _next(self, number: int) -> dict[str, Any]:
        line = batch_line(number, self._batches[number], time.time() - 1, self._chance)
        self._batches[number] += 1
        return line

    def batch(self, number: int) -> None:
        """Writes a batch of a query."""
        line = self._next(number)
        self._append([("batch", {**line, "query": entry(number, line)})])

    def _append(self, lines: list[tuple[str, dict[str, Any]]]) -> None:
        head = {"time": iso(time.time()), "invocation_id": self._id}
        with self._journal.open("a", encoding="utf-8") as file:
            for event, fields in lines:
                file.write(json.dumps({**head, "event": event, **fields}) + "\n")


def make_history(folder: Path, history: History) -> None:
    """Writes the project and its history, without the journal."""
    write_project(folder, history.queries)
    (folder / "logs").mkdir(exist_ok=True)
    connection, _ = open_file(folder / "logs" / HISTORY, HISTORY_FILE)
    with closing(connection):
        for runs in runs_of(history):
            with transaction(connection):
                write_runs(connection, runs)


def run_live(run: LiveRun, queries: int, rate: float) -> None:
    """Appends `rate` batches per second until Ctrl-C."""
    numbers = [number for number in range(queries) if number % 40 != FAILED]
    began = time.monotonic()
    for count in range(1 << 62):
        run.batch(numbers[count % len(numbers)])
        time.sleep(max(began + (count + 1) / rate - time.monotonic(), 0))


def main() -> None:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--batches", type=int, default=1_000_000)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--live", type=float, metavar="RATE", help="batches per second to append until Ctrl-C")
    given = parser.parse_args()
    history = History(given.queries, given.batches, given.days, time.time())
    began = time.monotonic()
    if not (given.folder / "logs" / HISTORY).exists():
        make_history(given.folder, history)
        print(f"{history.batches:,} batches of {history.queries} queries in {time.monotonic() - began:.0f} s")
    run = LiveRun(given.folder, history)
    run.begin()
    try:
        if given.live:
            print(f"run {os.getpid()} writes {given.live:g} batches per second; Ctrl-C ends it", flush=True)
            run_live(run, history.queries, given.live)
    except KeyboardInterrupt:
        pass
    finally:
        run.end()


if __name__ == "__main__":
    main()
