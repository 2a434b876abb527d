"""Earlier runs of a project, read from the journal and from run_results.json, and the newest state of each query in
them.

Torn entries and entries in a form that this version does not write are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from sqlstream.errors import Finding
from sqlstream.state.progress.lag import QueryProgress
from sqlstream.state.runs.events import NO_OP, Status
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.run_state import LiveStatus

PROGRESS_KEYS = tuple(BatchProgress.__dataclass_fields__)
"""The fields of a batch's progress in the journal."""

QUERY_KINDS = ("stream", "batch", None)
"""The kinds of entries about queries. Early versions wrote no kind."""

NOT_RUNS = ("test", "backfill")
"""The commands in run_results.json that start no queries."""

KILLED = "killed"
"""The status of a query whose run died without a report."""
UNKNOWN = "unknown"
"""The status of a query whose run cannot be checked on this machine."""
FAILED = frozenset({Status.ERROR, KILLED})


@dataclass
class PastRun:
    """One run: its process, the times of its first and last entry (UTC, ISO 8601), and the newest entry of each query
    by model name, with its time in `heard_at`. `succeeded` is None for a run that has not reported its end.
    """

    invocation_id: str
    target: str | None = None
    pid: int | None = None
    process_start: str | None = None
    began_at: str = ""
    heard_at: str = ""
    succeeded: bool | None = None
    queries: dict[str, dict[str, Any]] = field(default_factory=dict)

    def add(self, line: Mapping[str, Any], time: str) -> None:
        """Adds one line of the journal, later than those before."""
        self.began_at, self.heard_at = self.began_at or time, max(self.heard_at, time)
        if line.get("event") == "run_began":
            self.target, self.pid, self.process_start = line.get("target"), line.get("pid"), line.get("process_start")
        elif line.get("event") == "run_loaded":
            self.target = line.get("target")
        elif line.get("event") == "run_ended":
            self.succeeded = line.get("succeeded") is True
        entry = line.get("query")
        if isinstance(entry, dict) and isinstance(entry.get("model"), str):
            known = {"progress": self.queries.get(entry["model"], {}).get("progress")}
            if line.get("event") == "batch":
                known = {"progress": {key: line.get(key) for key in PROGRESS_KEYS}}
            self.queries[entry["model"]] = {**known, **entry, "heard_at": time}

    def add_results(self, results: Mapping[str, Any]) -> None:
        """Adds entries of run_results.json about the same run that are newer than those of the journal."""
        metadata, time = results["metadata"], str(results["metadata"].get("generated_at", ""))
        self.target, self.pid = metadata.get("target"), metadata.get("pid")
        self.process_start = metadata.get("process_start")
        self.began_at = self.began_at or str(metadata.get("started_at", time))
        self.heard_at = max(self.heard_at, time)
        if results.get("status") != "running":
            self.succeeded = results.get("status") == "success"
        for entry in results.get("results", ()):
            is_query = isinstance(entry, dict) and entry.get("kind") in QUERY_KINDS and entry.get("status") != NO_OP
            model = entry.get("model") if is_query else None
            if isinstance(model, str) and self.queries.get(model, {}).get("heard_at", "") < time:
                self.queries[model] = {**entry, "heard_at": time}


def past_runs(lines: Iterable[str], results: object) -> tuple[PastRun, ...]:
    """Returns the runs in the `lines` of the journal and the run of `results`, in the order of their start."""
    found: dict[str, PastRun] = {}
    for text in lines:
        line = journal_line(text)
        identity = line.get("invocation_id")
        if isinstance(identity, str) and isinstance(line.get("time"), str):
            found.setdefault(identity, PastRun(identity)).add(line, line["time"])
    metadata = results.get("metadata") if isinstance(results, dict) and _is_run(results) else None
    if isinstance(results, dict) and isinstance(metadata, dict) and isinstance(metadata.get("invocation_id"), str):
        identity = metadata["invocation_id"]
        found.setdefault(identity, PastRun(identity)).add_results(results)
    return tuple(sorted(found.values(), key=lambda run: run.began_at))


def _is_run(results: Mapping[str, Any]) -> bool:
    """Returns whether a `run` or a `build` wrote the content of run_results.json."""
    arguments = results.get("args")
    return not isinstance(arguments, dict) or arguments.get("which") not in NOT_RUNS


def journal_line(text: str | bytes) -> dict[str, Any]:
    """Returns a line of the journal; empty for one that is torn or has another form."""
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}


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
    of the selected queries say; `unread` says why they were not read.
    """

    queries: tuple[QueryWithStatus, ...]
    runs: tuple[RunWithStatus, ...]
    progress: tuple[QueryProgress, ...] = ()
    unread: Finding | None = None

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


def _now(life: RunStatus, status: str) -> dict[str, Any]:
    """Returns the changed fields of a query whose run is gone."""
    if life is RunStatus.RUNNING or status not in set(LiveStatus):
        return {}
    ended = Status.SKIPPED if status == LiveStatus.PENDING else Status.INTERRUPTED
    gone = {RunStatus.KILLED: KILLED, RunStatus.ELSEWHERE: UNKNOWN}.get(life, str(ended))
    return {"status": gone, "silence": None}
