"""`sqlstream status`: the status of a project's queries, from the history of its runs, run_results.json and the
checkpoints.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlstream.app.evolve.patches import patch_path
from sqlstream.app.loading.artifacts import MANIFEST, RUN_RESULTS
from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.logs import LOGS_FOLDER
from sqlstream.app.loading.selected_queries import with_added_queries
from sqlstream.app.loading.selecting import select, terminal_models
from sqlstream.app.observe.record import journal_files
from sqlstream.app.observe.stored_journal import (
    LOST_SECONDS,
    copied_journals,
    copy_stored_logs,
    stored_logs,
)
from sqlstream.app.request import EVERYTHING, ProjectRequest, Selection
from sqlstream.app.session.target_storage import (
    ReadableStorage,
    needs_other_system,
    readable_storage,
    why_only_spark,
)
from sqlstream.app.status.lags import progress_without_spark
from sqlstream.app.systems import is_windows
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import Finding, FindingsError, UsageError
from sqlstream.history.reads import PastRun, past_runs
from sqlstream.history.store import read_history
from sqlstream.project.files.files import ARTIFACTS_FOLDER, find_project_root
from sqlstream.spark.storage.processes import machine_id, process_start
from sqlstream.state.runs.events import NO_OP, Status
from sqlstream.state.runs.silence import recorded_silence
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.state.sources.lag import QueryProgress, amount_of

QUERY_KINDS = ("stream", "batch", None)
"""The kinds of entries about queries. Early versions wrote no kind."""

NOT_RUNS = ("test", "backfill")
"""The commands in run_results.json that start no queries."""

KILLED = "killed"
"""The status of a query whose run died without a report."""
UNKNOWN = "unknown"
"""The status of a query whose run cannot be checked on this machine."""
FAILED = frozenset({Status.ERROR, KILLED})


NO_SIGNS: Mapping[str, float] = {}


class RunStatus(StrEnum):
    """The state of a run. `KILLED`: its process ended without reporting its end. `ELSEWHERE`: it has not reported its
    end, and ran on another machine, in another container, or before the last reboot.
    """

    RUNNING = "running"
    ENDED = "ended"
    KILLED = "killed"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True)
class RunWithStatus:
    """A run and its state."""

    run: PastRun
    life: RunStatus

    @property
    def is_refused(self) -> bool:
        """Whether it failed before any query started."""
        states = {str(entry.get("status")) for entry in self.run.queries.values()}
        return self.run.succeeded is False and states <= {LiveStatus.PENDING}


@dataclass(frozen=True)
class QueryWithStatus:
    """A query after its newest run: the entry of run_results.json, with its current `status`."""

    run: RunWithStatus
    entry: Mapping[str, Any]

    @property
    def model(self) -> str:
        """The name of the model."""
        return str(self.entry["model"])

    @property
    def status(self) -> str:
        """Its status."""
        return str(self.entry.get("status"))


@dataclass(frozen=True)
class ProjectStatus:
    """The queries of recorded runs by their names, and these runs, the newest last. `progress` is what the checkpoints
    of the selected queries say; `unread` says why they were not read. `patched` are the sources for whose new fields a
    run has written a patch.
    """

    queries: tuple[QueryWithStatus, ...]
    runs: tuple[RunWithStatus, ...]
    progress: tuple[QueryProgress, ...] = ()
    unread: Finding | None = None
    patched: tuple[str, ...] = ()

    @property
    def is_well(self) -> bool:
        """Whether no query has failed or was killed, and the newest run was not refused."""
        newest_refused = bool(self.runs) and self.runs[-1].is_refused
        return not newest_refused and not any(query.status in FAILED for query in self.queries)


def project_status(runs: Sequence[RunWithStatus], wanted: Collection[str] | None) -> ProjectStatus:
    """Returns the newest state of each query of `runs`, which are in the order of their start. `wanted` are the unique
    ids of the models to include, None for all.
    """
    entries = ((known, model, entry) for known in runs for model, entry in known.run.queries.items())
    newest = {
        model: QueryWithStatus(known, {**entry, **_now(known.life, str(entry.get("status")))})
        for known, model, entry in entries
        if wanted is None or entry.get("unique_id") in wanted
    }
    queries = tuple(newest[model] for model in sorted(newest))
    shown = [known for known in runs if any(query.run is known for query in queries) or known is runs[-1]]
    return ProjectStatus(queries, tuple(shown))


def with_patches(status: ProjectStatus, root: Path) -> ProjectStatus:
    """Returns `status` with the sources whose new fields have a patch in the project at `root`."""
    sources = {source: None for query in status.queries for source in query.entry.get("new_types") or ()}
    return replace(status, patched=tuple(source for source in sources if (root / patch_path(source)).exists()))


def _now(life: RunStatus, status: str) -> dict[str, Any]:
    """Returns the changed fields of a query whose run is gone."""
    if life is RunStatus.RUNNING or status not in set(LiveStatus):
        return {}
    ended = Status.SKIPPED if status == LiveStatus.PENDING else Status.INTERRUPTED
    gone = {RunStatus.KILLED: KILLED, RunStatus.ELSEWHERE: UNKNOWN}.get(life, str(ended))
    return {"status": gone, "silence": None}


def read_status(request: ProjectRequest, selection: Selection = EVERYTHING, *, check: bool = False) -> ProjectStatus:
    """Returns the status of the selected queries: each in its newest run, and its progress according to its checkpoint.

    Starts no query, and Spark only to `check` or if nothing else can read the checkpoints. If the request names a
    target, only its runs count.

    Raises: UsageError if there is neither a record nor a checkpoint of the queries; FindingsError if the selection
    contains no query, if the project or the storage cannot be read and there is no record, or if Spark cannot start;
    KeyboardInterrupt after a signal while Spark runs.
    """
    root = find_project_root(request.folder)
    nodes = _read(root / ARTIFACTS_FOLDER / MANIFEST).get("nodes")
    wanted = frozenset(nodes) if isinstance(nodes, dict) else None  # not the models that have been removed since
    try:
        loaded, models = _selected(request, selection)
    except FindingsError as error:
        runs = _runs_of(request, known_runs(root))
        if selection != EVERYTHING or check or not runs:
            raise
        return replace(with_patches(project_status(runs, wanted), root), unread=error.findings[0])
    if selection != EVERYTHING:
        wanted = frozenset(model.unique_id for model in models)
    reason = None if check else why_only_spark(loaded, models)
    progress: tuple[QueryProgress, ...] = ()
    signs, unread = NO_SIGNS, None
    storage = None if check or reason is not None else readable_storage(loaded)
    if storage is not None:
        progress = progress_without_spark(storage, models)
        with suppress(OSError):  # `progress` says so
            signs = copy_logs(storage)
    else:
        try:
            progress, signs = _read_with_spark(loaded, models, request, reason)
        except FindingsError as error:
            if check:
                raise
            unread = error
    runs = _runs_of(request, known_runs(root, signs))
    status = with_patches(project_status(runs, wanted), root)
    is_recorded = bool(status.queries) or (bool(runs) and selection == EVERYTHING)
    if unread is not None:
        if not is_recorded:
            raise unread
        return replace(status, unread=unread.findings[0])
    if not is_recorded and not any(query.is_started or query.problem for query in progress):
        raise UsageError(_nothing_to_read(bool(runs)))
    queries = tuple(_with_input(query, progress) for query in status.queries)
    return replace(status, queries=queries, progress=progress)


def _read_with_spark(
    loaded: Loaded, models: Sequence[CompiledModel], request: ProjectRequest, reason: str | None
) -> tuple[tuple[QueryProgress, ...], Mapping[str, float]]:
    """Returns what `progress_with_spark` does. Raises: FindingsError, KeyboardInterrupt."""
    if reason is not None and is_windows():
        raise FindingsError([needs_other_system(loaded, reason)])
    from sqlstream.app.status.lags_with_spark import progress_with_spark  # loads pyspark

    return progress_with_spark(loaded, models, request, reason)


def _runs_of(request: ProjectRequest, runs: Sequence[RunWithStatus]) -> list[RunWithStatus]:
    return [each for each in runs if request.target in (None, each.run.target)]


def copy_logs(storage: ReadableStorage) -> Mapping[str, float]:
    """Brings the project's copy of the journals of submitted runs up to date, and returns when these were alive.

    Raises: OSError.
    """
    project = storage.loaded.compiled.project
    files, folder = storage.of(stored_logs(storage.base))
    return copy_stored_logs(files, folder, project.root, project.target.name)


def _with_input(query: QueryWithStatus, progress: Sequence[QueryProgress]) -> QueryWithStatus:
    """Returns a query whose record does not say that it lacks input while its checkpoint shows that it has some."""
    versions = [version for each in progress if each.model == query.model for version in each.versions]
    has_input = query.status == LiveStatus.RUNNING and any(
        version.position.open_batch is not None
        or any(source.lag and amount_of(source.lag) for source in version.sources)
        for version in versions
    )
    return replace(query, entry={**query.entry, "silence": recorded_silence(query.entry, has_input=has_input)})


def _selected(project: ProjectRequest, selection: Selection) -> tuple[Loaded, tuple[CompiledModel, ...]]:
    """Returns the project and the terminal models that a run would start."""
    loaded = load_for_reading(project)
    chosen, _ = select(loaded.compiled, selection)
    return loaded, with_added_queries(loaded.compiled, terminal_models(loaded.compiled, chosen), selection)


def _nothing_to_read(has_runs: bool) -> str:
    whose = "of the selected queries" if has_runs else "of a run"
    return (
        f"no events {whose} in logs/events.jsonl and target/run_results.json, and no checkpoint in the storage of the "
        "target; `sqlstream run` writes these files"
    )


def known_runs(root: Path, signs: Mapping[str, float] = NO_SIGNS) -> tuple[RunWithStatus, ...]:
    """Returns the recorded runs of the project at `root`, the oldest first. `signs` is as in `run_status`."""
    logs, results = root / LOGS_FOLDER, read_results(root)
    history = read_history(
        logs, (*copied_journals(root), *journal_files(logs)), lambda run: target_of_results(results, run)
    )
    with closing(history):
        runs = with_results(past_runs(history), results)
    return tuple(RunWithStatus(run, run_status(run, signs)) for run in runs)


def with_results(runs: Iterable[PastRun], results: Mapping[str, Any]) -> tuple[PastRun, ...]:
    """Returns `runs` and the run of `results`, in the order of their start. Its entries that are newer than those of
    the history replace them: the journal could not be written.
    """
    found = {run.invocation_id: run for run in runs}
    metadata, arguments = results.get("metadata"), results.get("args")
    is_run = not isinstance(arguments, dict) or arguments.get("which") not in NOT_RUNS
    if is_run and isinstance(metadata, dict) and isinstance(metadata.get("invocation_id"), str):
        run = found.get(metadata["invocation_id"], PastRun(metadata["invocation_id"]))
        time = str(metadata.get("generated_at", ""))
        succeeded = run.succeeded if results.get("status") == "running" else results.get("status") == "success"
        found[run.invocation_id] = replace(
            run,
            target=metadata.get("target"),
            pid=metadata.get("pid"),
            process_start=metadata.get("process_start"),
            began_at=run.began_at or str(metadata.get("started_at", time)),
            heard_at=max(run.heard_at, time),
            succeeded=succeeded,
            queries={**run.queries, **dict(_newer_entries(run, results, time))},
        )
    return tuple(sorted(found.values(), key=lambda run: run.began_at))


def _newer_entries(run: PastRun, results: Mapping[str, Any], time: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for entry in results.get("results", ()):
        is_query = isinstance(entry, dict) and entry.get("kind") in QUERY_KINDS and entry.get("status") != NO_OP
        model = entry.get("model") if is_query else None
        if isinstance(model, str) and run.queries.get(model, {}).get("heard_at", "") < time:
            yield model, {**entry, "heard_at": time}


def target_of_results(results: Mapping[str, Any], invocation: str) -> str | None:
    """Returns the target of the run in run_results.json if it has this id, otherwise None."""
    metadata = results.get("metadata", {})
    target = metadata.get("target") if isinstance(metadata, dict) else None
    return str(target) if target is not None and metadata.get("invocation_id") == invocation else None


def run_status(run: PastRun, signs: Mapping[str, float] = NO_SIGNS) -> RunStatus:
    """Returns whether a run is active, has ended, was killed, or is in another machine or container. `signs` says when
    submitted runs were alive, in seconds since 1970, if the storage can be read now; see `copy_stored_logs`.
    """
    if run.succeeded is not None:
        return RunStatus.ENDED
    if run.pid is not None and run.process_start is not None:
        if process_start(run.pid) == run.process_start:
            return RunStatus.RUNNING
        if run.process_start.startswith(machine_id()):
            return RunStatus.KILLED
    if run.invocation_id in signs:
        return RunStatus.RUNNING if time.time() - signs[run.invocation_id] < LOST_SECONDS else RunStatus.KILLED
    return RunStatus.ELSEWHERE


def read_results(root: Path) -> Mapping[str, Any]:
    """Returns the content of run_results.json, empty if it cannot be read."""
    return _read(root / ARTIFACTS_FOLDER / RUN_RESULTS)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
