"""The states of a project's queries according to the newest run of each, and whether that run is alive."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sqlstream.errors import Finding
from sqlstream.state.progress.progress import QueryProgress
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.history import PastRun
from sqlstream.state.runs.run_state import LiveStatus

KILLED = "killed"
"""The status of a query whose run died without a report."""
UNKNOWN = "unknown"
"""The status of a query whose run cannot be checked on this machine."""
FAILED = frozenset({Status.ERROR, KILLED})


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
