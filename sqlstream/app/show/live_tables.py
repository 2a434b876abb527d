"""Shows the tables of memory sinks to other processes during a run.

Only the process of the run can read such a table. `show` writes a request to target/live/, and the run writes its
answer beside it. Files need no port, no secret and no short socket path, and the permissions of the project apply.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

from sqlstream.app.loading.atomic_writes import write_file
from sqlstream.app.status.status import RunStatus, known_runs, run_status
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import UsageError
from sqlstream.history.reads import PastRun
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.report.rows import json_text
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.state.shown_rows import ShownColumn, ShownRows

LIVE_FOLDER = "live"
POLL_SECONDS = 0.2
"""How often a run checks for requests, and `show` for the answer."""
ANSWER_TIMEOUT_SECONDS = 60.0
"""How long `show` waits. Reading the table is a Spark job, which may wait for cores that batches use."""
STOP_TIMEOUT_SECONDS = 10.0
"""How long a run waits at its end for an answer in progress."""

Table = Callable[[int], tuple[ShownRows, int] | None]
"""Returns the first rows of a table and its number of rows, None if the table does not exist yet."""


@contextmanager
def serving(root: Path, run_id: str, tables: Mapping[str, Table]) -> Iterator[None]:
    """Answers requests for `tables`, keyed by the names of their models, in a thread during the body."""
    if not tables:
        yield
        return
    ended = threading.Event()
    folder = _folder(root)

    def answer_all() -> None:
        while not ended.wait(POLL_SECONDS):
            for request in folder.glob(f"{run_id}.*.ask"):
                _answer(request, tables)

    thread = threading.Thread(target=answer_all, name="live tables", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(STOP_TIMEOUT_SECONDS)
        for left in folder.glob(f"{run_id}.*"):
            left.unlink(missing_ok=True)


def _answer(request: Path, tables: Mapping[str, Table]) -> None:
    """Writes the answer to one request. Leaves the request if its table does not exist yet."""
    with suppress(OSError, UsageError):  # without an answer, the request times out
        answer = _table_content(_read(request), tables)
        if answer is None:
            return
        request.unlink()
        write_file(str(request.with_suffix(".answer")), json_text(answer).encode())


def _table_content(request: Mapping[str, Any], tables: Mapping[str, Table]) -> dict[str, Any] | None:
    """Returns the rows of the requested table; nothing for an unknown table, None if the table does not exist yet."""
    table, limit = tables.get(str(request.get("model"))), request.get("limit")
    if table is None or not isinstance(limit, int):
        return {}
    found = table(limit)
    if found is None:
        return None
    shown, count = found
    columns = [[column.name, column.data_type] for column in shown.columns]
    return {"columns": columns, "rows": shown.rows, "count": count}


def live_rows(
    compiled: CompiledProject, model: CompiledModel, limit: int, notify: Callable[[str], None]
) -> ShownRows | None:
    """Returns the first rows of the in-memory table of `model` in a running process; None if no run has such a table.
    Raises: UsageError if the run does not answer.
    """
    if model.output is None or model.output.format != "memory":
        return None
    root = compiled.project.root
    run = _run_of(root, compiled.project.target.name, model.name)
    if run is None:
        return None
    answer = _request_rows(root, run, model.name, limit)
    if not answer:
        return None
    columns = tuple(ShownColumn(name, data_type) for name, data_type in answer["columns"])
    rows = tuple(map(tuple, answer["rows"]))
    notify(f"{model.name} is running in process {run.pid}; its in-memory table has {answer['count']:,} rows so far")
    return ShownRows(model.name, model.unique_id, columns, rows, limit)


def _run_of(root: Path, target: str, model: str) -> PastRun | None:
    """Returns the newest run that is alive and has a running query of `model`."""
    for seen in reversed(known_runs(root)):
        entry = seen.run.queries.get(model, {})
        if seen.life is RunStatus.RUNNING and seen.run.target == target and entry.get("status") in set(LiveStatus):
            return seen.run
    return None


def _request_rows(root: Path, run: PastRun, model: str, limit: int) -> Mapping[str, Any]:
    """Returns the answer of the run; nothing if it has no such table or ends first. Raises: UsageError."""
    request = _folder(root) / f"{run.invocation_id}.{uuid4().hex}.ask"
    answer = request.with_suffix(".answer")
    write_file(str(request), json.dumps({"model": model, "limit": limit}).encode())
    try:
        return _await_answer(answer, run, model)
    finally:
        for path in (request, answer):
            path.unlink(missing_ok=True)


def _await_answer(answer: Path, run: PastRun, model: str) -> Mapping[str, Any]:
    until = time.monotonic() + ANSWER_TIMEOUT_SECONDS
    while time.monotonic() < until:
        if answer.exists():
            return _read(answer)
        if run_status(run) is not RunStatus.RUNNING:
            return {}
        time.sleep(POLL_SECONDS)
    raise UsageError(
        f"the run of {model}, process {run.pid}, did not return its table within {ANSWER_TIMEOUT_SECONDS:.0f} s; its "
        "queries may keep all cores busy, so try again later or use more cores"
    )


def _folder(root: Path) -> Path:
    return root / ARTIFACTS_FOLDER / LIVE_FOLDER


def _read(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_bytes(), parse_float=Decimal)
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
