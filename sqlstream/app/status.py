"""`sqlstream status`: shows the status of a project's queries, from the records of their runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import MANIFEST, RUN_RESULTS
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.running.journal import journal_files
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.spark.storage.process_start import machine_id, process_start
from sqlstream.state.runs.history import PastRun, past_runs
from sqlstream.state.runs.status import ProjectStatus, RunStatus, RunWithStatus, project_status


def read_status(request: ProjectRequest, selection: Selection = EVERYTHING) -> ProjectStatus:
    """Returns the status of the selected queries, each in its newest run. Starts nothing.

    Without a selection, no SQL is compiled. If the request names a target, only its runs count.
    Raises: UsageError if there is no record of the queries; FindingsError if the selection contains no query.
    """
    root = find_project_root(request.folder)
    wanted = _known_models(root)
    if selection != EVERYTHING:
        compiled = load_for_reading(request).compiled
        chosen, _ = select(compiled, selection)
        wanted = frozenset(model.unique_id for model in terminal_models(compiled, chosen))
    runs = [each for each in known_runs(root) if request.target in (None, each.run.target)]
    status = project_status(runs, wanted)
    if not runs or (selection != EVERYTHING and not status.queries):
        whose = "of the selected queries" if runs else "of a run"
        raise UsageError(
            f"no events {whose} in logs/events.jsonl and target/run_results.json; `sqlstream run` writes these files"
        )
    return status


def known_runs(root: Path) -> tuple[RunWithStatus, ...]:
    """Returns the recorded runs of the project at `root`, the oldest first."""
    runs = past_runs(_lines(root), _read(root / ARTIFACTS_FOLDER / RUN_RESULTS))
    return tuple(RunWithStatus(run, run_status(run)) for run in runs)


def run_status(run: PastRun) -> RunStatus:
    """Returns whether a run is active, has ended, was killed, or is in another machine or container."""
    if run.succeeded is not None:
        return RunStatus.ENDED
    if run.pid is not None and run.process_start is not None:
        if process_start(run.pid) == run.process_start:
            return RunStatus.RUNNING
        if run.process_start.startswith(machine_id()):
            return RunStatus.KILLED
    return RunStatus.ELSEWHERE


def _known_models(root: Path) -> frozenset[str] | None:
    """Returns the nodes of the project when it was last compiled, to leave out removed models. None if unknown."""
    manifest = _read(root / ARTIFACTS_FOLDER / MANIFEST)
    nodes = manifest.get("nodes") if isinstance(manifest, dict) else None
    return frozenset(nodes) if isinstance(nodes, dict) else None


def _lines(root: Path) -> Iterator[str]:
    for path in journal_files(root / LOGS_FOLDER):
        with suppress(OSError), path.open(encoding="utf-8", errors="replace") as file:
            yield from file


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
