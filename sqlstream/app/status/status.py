"""`sqlstream status`: shows the status of a project's queries, from the records of their runs and their checkpoints."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import MANIFEST, RUN_RESULTS
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.loading.selected_queries import with_added_queries
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.observe.record import journal_files
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.status.lags import progress_without_spark
from sqlstream.app.stored.local_storage import local_storage, remote_storage
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.spark.storage.processes import machine_id, process_start
from sqlstream.state.progress.lag import QueryProgress
from sqlstream.state.runs.history import PastRun, ProjectStatus, RunStatus, RunWithStatus, past_runs, project_status


def read_status(request: ProjectRequest, selection: Selection = EVERYTHING, *, check: bool = False) -> ProjectStatus:
    """Returns the status of the selected queries: each in its newest run, and its progress according to its checkpoint.

    Starts no query, and Spark only to `check`. If the request names a target, only its runs count.
    Raises: UsageError if there is neither a record nor a checkpoint of the queries; FindingsError if the selection
    contains no query, if the project or the storage cannot be read and there is no record, or if Spark cannot start;
    KeyboardInterrupt after a signal while Spark runs.
    """
    root = find_project_root(request.folder)
    wanted = _known_models(root)
    runs = [each for each in known_runs(root) if request.target in (None, each.run.target)]
    try:
        loaded, models = _selected(request, selection)
    except FindingsError as error:
        if selection != EVERYTHING or check or not runs:
            raise
        return replace(project_status(runs, wanted), unread=error.findings[0])
    if selection != EVERYTHING:
        wanted = frozenset(model.unique_id for model in models)
    status = project_status(runs, wanted)
    is_recorded = bool(status.queries) or (bool(runs) and selection == EVERYTHING)
    storage = local_storage(loaded)
    if check:
        progress = _ask_spark(request, loaded, models)
    elif storage is not None:
        progress = progress_without_spark(loaded, storage, models)
    elif is_recorded:
        return replace(status, unread=remote_storage(loaded, "status"))
    else:
        raise FindingsError([remote_storage(loaded, "status")])
    if not is_recorded and not any(query.is_started or query.problem for query in progress):
        raise UsageError(_nothing_to_read(bool(runs)))
    return replace(status, progress=progress)


def _selected(project: ProjectRequest, selection: Selection) -> tuple[Loaded, tuple[CompiledModel, ...]]:
    """Returns the project and the terminal models that a run would start."""
    loaded = load_for_reading(project)
    chosen, _ = select(loaded.compiled, selection)
    return loaded, with_added_queries(loaded.compiled, terminal_models(loaded.compiled, chosen), selection)


def _ask_spark(request: ProjectRequest, loaded: Loaded, models: tuple[CompiledModel, ...]) -> tuple[QueryProgress, ...]:
    from sqlstream.app.status.lags_with_spark import progress_with_spark  # loads pyspark

    return progress_with_spark(loaded, models, request)


def _nothing_to_read(has_runs: bool) -> str:
    whose = "of the selected queries" if has_runs else "of a run"
    return (
        f"no events {whose} in logs/events.jsonl and target/run_results.json, and no checkpoint in the storage of the "
        "target; `sqlstream run` writes these files"
    )


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
