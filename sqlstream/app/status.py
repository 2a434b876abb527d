"""`sqlstream status`: how the queries of a project stand, while they run and afterwards, from what their runs noted."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import MANIFEST, RUN_RESULTS
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.running.journal import journal_files
from sqlstream.app.running.process_start import machine, process_start
from sqlstream.errors import UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.state.runs.history import PastRun, past_runs
from sqlstream.state.runs.status import KnownRun, ProjectStatus, RunStatus, project_status


def read_status(request: ProjectRequest, selection: Selection = EVERYTHING) -> ProjectStatus:
    """Returns how the selected queries stand, in the newest run that each was part of. Nothing is started.

    Without a selection no SQL is compiled. Where the request names a target, only its runs count.
    Raises: UsageError where no run has left anything about them; FindingsError for a selection that takes no query.
    """
    root = find_project_root(request.folder)
    wanted = _known_models(root)
    if selection != EVERYTHING:
        compiled = load_for_reading(request).compiled
        chosen, _ = select(compiled, selection)
        wanted = frozenset(model.unique_id for model in terminal_models(compiled, chosen))
    seen = [each for each in seen_runs(root) if request.target in (None, each.run.target)]
    status = project_status(seen, wanted)
    if not seen or (selection != EVERYTHING and not status.queries):
        whose = "of the selected queries" if seen else "of a run"
        raise UsageError(
            f"no events {whose} in logs/events.jsonl and target/run_results.json; `sqlstream run` writes these files"
        )
    return status


def seen_runs(root: Path) -> tuple[KnownRun, ...]:
    """Returns the runs of the project at `root` that have left anything, the first to begin first."""
    runs = past_runs(_lines(root), _read(root / ARTIFACTS_FOLDER / RUN_RESULTS))
    return tuple(KnownRun(run, life_of(run)) for run in runs)


def life_of(run: PastRun) -> RunStatus:
    """Returns what has become of a run."""
    if run.succeeded is not None:
        return RunStatus.ENDED
    if run.pid is not None and run.process_start is not None:
        if process_start(run.pid) == run.process_start:
            return RunStatus.RUNNING
        if run.process_start.startswith(machine()):
            return RunStatus.KILLED
    return RunStatus.ELSEWHERE


def _known_models(root: Path) -> frozenset[str] | None:
    """The models that the project has, as it was last compiled: what was removed since is of no interest."""
    manifest = _read(root / ARTIFACTS_FOLDER / MANIFEST)
    nodes = manifest.get("nodes") if isinstance(manifest, dict) else None
    return frozenset(nodes) if isinstance(nodes, dict) else None


def _lines(root: Path) -> Iterator[str]:
    for path in journal_files(root / LOGS_FOLDER):
        try:
            with path.open(encoding="utf-8", errors="replace") as file:
                yield from file
        except OSError:
            continue


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
