"""The tables of memory sinks, shown to other processes while their run lasts.

Only the process of a run can read such a table. `show` leaves a request in target/live/, the run answers beside it:
files need no port, no secret and no path that fits into a socket's name, and whoever may read the project may ask.
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

from sqlstream.app.loading.whole_files import write_file
from sqlstream.app.status import life_of, seen_runs
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.report.rows import json_text
from sqlstream.state.results.rows import ShownColumn, ShownRows
from sqlstream.state.runs.history import PastRun
from sqlstream.state.runs.run_state import LiveStatus
from sqlstream.state.runs.status import RunStatus

LIVE_FOLDER = "live"
ASK_SECONDS = 0.2
"""How often a run looks for requests, and `show` for its answer."""
PATIENCE_SECONDS = 60.0
"""How long `show` waits: reading the table is a job of Spark's, which may wait for cores behind batches."""
END_SECONDS = 10.0
"""How long a run waits at its end for an answer that is being made."""

Table = Callable[[int], tuple[ShownRows, int] | None]
"""Gives the first rows of a table and how many it has, None where there is no table yet."""


@contextmanager
def serving(root: Path, run_id: str, tables: Mapping[str, Table]) -> Iterator[None]:
    """Answers requests for `tables`, by the names of their models, in a thread while the body runs."""
    if not tables:
        yield
        return
    ended = threading.Event()
    folder = _folder(root)

    def serve() -> None:
        while not ended.wait(ASK_SECONDS):
            for request in folder.glob(f"{run_id}.*.ask"):
                with suppress(OSError, UsageError):  # whoever asked does not wait for ever
                    _answer(request, tables)

    thread = threading.Thread(target=serve, name="live tables", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_SECONDS)
        for left in folder.glob(f"{run_id}.*"):
            left.unlink(missing_ok=True)


def _answer(request: Path, tables: Mapping[str, Table]) -> None:
    """Writes the answer to one request, an empty one for what is no table here; later where there is no table yet."""
    asked = _read(request)
    table, limit = tables.get(str(asked.get("model"))), asked.get("limit")
    answer: dict[str, Any] = {}
    if table is not None and isinstance(limit, int):
        found = table(limit)
        if found is None:
            return
        shown, count = found
        columns = [[column.name, column.data_type] for column in shown.columns]
        answer = {"columns": columns, "rows": shown.rows, "count": count}
    request.unlink()
    write_file(str(request.with_suffix(".answer")), json_text(answer).encode())


def live_rows(
    compiled: CompiledProject, model: CompiledModel, limit: int, notify: Callable[[str], None]
) -> ShownRows | None:
    """Returns the first rows of the table in memory that a run of the target fills from `model`; None where no run
    does. Raises: UsageError where the run does not answer.
    """
    if model.output is None or model.output.format != "memory":
        return None
    root = compiled.project.root
    run = _run_of(root, compiled.project.target.name, model.name)
    if run is None:
        return None
    answer = _asked(root, run, model.name, limit)
    if not answer:
        return None
    columns = tuple(ShownColumn(name, data_type) for name, data_type in answer["columns"])
    rows = tuple(map(tuple, answer["rows"]))
    notify(f"{model.name} is running in process {run.pid}; its in-memory table has {answer['count']:,} rows so far")
    return ShownRows(model.name, model.unique_id, columns, rows, limit)


def _run_of(root: Path, target: str, model: str) -> PastRun | None:
    """The newest run that still lives and has a query of `model` going."""
    for seen in reversed(seen_runs(root)):
        entry = seen.run.queries.get(model, {})
        if seen.life is RunStatus.RUNNING and seen.run.target == target and entry.get("status") in set(LiveStatus):
            return seen.run
    return None


def _asked(root: Path, run: PastRun, model: str, limit: int) -> Mapping[str, Any]:
    """What the run answers; nothing where it has no such table or ends first. Raises: UsageError."""
    request = _folder(root) / f"{run.invocation_id}.{uuid4().hex}.ask"
    answer = request.with_suffix(".answer")
    write_file(str(request), json.dumps({"model": model, "limit": limit}).encode())
    try:
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if answer.exists():
                return _read(answer)
            if life_of(run) is not RunStatus.RUNNING:
                return {}
            time.sleep(ASK_SECONDS)
    finally:
        for path in (request, answer):
            path.unlink(missing_ok=True)
    raise UsageError(
        f"the run of {model}, process {run.pid}, did not return its table within {PATIENCE_SECONDS:.0f} s; its "
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
