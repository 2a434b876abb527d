"""The last command of a project in target/run_results.json: what it was, what of it failed, and the record of `test`
and `backfill`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import RUN_RESULTS, RunRecord, write_run_results
from sqlstream.app.loading.load import Invocation
from sqlstream.app.status.status import RunStatus, run_status
from sqlstream.errors import Finding, UsageError
from sqlstream.history.reads import PastRun
from sqlstream.project.configuration.trigger import ENDING
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.spark.storage.processes import process_start
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.state.runs.unit_tests import Outcome

RETRIED = frozenset(
    {Status.ERROR, Status.SKIPPED, Status.INTERRUPTED, Outcome.FAILED, Outcome.BROKEN, Outcome.SKIPPED, *LiveStatus}
)
"""The statuses of nodes to repeat. Nodes of a killed command are still pending or running."""


@dataclass(frozen=True)
class LastCommand:
    """The last command: its arguments, its target (None if it did not load the project), its `status`, when it started
    (UTC, ISO 8601), and the entries of its nodes. `life` is whether its process still runs.
    """

    arguments: Mapping[str, Any]
    target: str | None
    status: str
    started_at: str
    invocation_id: str
    entries: Sequence[Mapping[str, Any]]
    life: RunStatus

    @property
    def which(self) -> str:
        """The name of the command."""
        return str(self.arguments["which"])

    @property
    def failed(self) -> tuple[Mapping[str, Any], ...]:
        """The entries of the nodes to repeat: they failed, were skipped, or did not reach their end."""
        return tuple(entry for entry in self.entries if self._is_retried(entry))

    @property
    def is_refused(self) -> bool:
        """Whether it failed without a node that failed, for example because the project did not compile. A command that
        was killed after its last node did not fail.
        """
        return self.status != "success" and not self.failed and not (self.status == "running" and self.entries)

    def _is_retried(self, entry: Mapping[str, Any]) -> bool:
        """An endless query that was stopped has done its work, unless --fail-fast has stopped it."""
        if entry["status"] != Status.STOPPED:
            return entry["status"] in RETRIED
        ends = entry["kind"] == "batch" or entry["trigger"] in ENDING
        return ends or (self.status == "error" and bool(self.arguments["fail_fast"]))


def read_last(folder: Path) -> LastCommand:
    """Returns the last command in the run_results.json of the folder. Raises: UsageError if there is none."""
    path = folder / RUN_RESULTS
    try:
        return _read(path)
    except OSError as error:
        problem = "does not exist" if isinstance(error, FileNotFoundError) else "cannot be read"
        raise _nothing(f"{path} {problem}", "run `sqlstream build` or `sqlstream run` first") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        problem = f"{path} does not say which command wrote it"
        raise _nothing(problem, "run the command again; this sqlstream then records its arguments") from error


def _read(path: Path) -> LastCommand:
    content = json.loads(path.read_bytes())
    metadata, entries = content["metadata"], content["results"]
    for entry in entries:
        entry["unique_id"], entry["status"], entry["kind"]
    content["args"]["which"]
    succeeded = None if content["status"] == "running" else content["status"] == "success"
    identity = str(metadata["invocation_id"])
    run = PastRun(identity, pid=metadata["pid"], process_start=metadata["process_start"], succeeded=succeeded)
    return LastCommand(
        content["args"],
        metadata["target"],
        content["status"],
        str(metadata["started_at"]),
        identity,
        entries,
        run_status(run),
    )


def _nothing(problem: str, fix: str) -> UsageError:
    why = "`retry` repeats what failed in the last command that this file describes"
    return UsageError(f"there is no command to retry: {problem}\n  why: {why}\n  fix: {fix}")


@dataclass
class ShortCommand:
    """The record of a command that starts no query, in the project at `root`, with these `arguments`.

    Leaves the file alone while a run in another process updates it: `status` and its alerts need that one more. Does
    nothing if target/ cannot be written: the results are printed.
    """

    root: Path
    target: str | None
    arguments: Mapping[str, Any]
    invocation: Invocation = field(default_factory=Invocation)
    began: float = field(default_factory=time.monotonic)

    def write(
        self, entries: Iterable[Mapping[str, object]], succeeded: bool | None, findings: Iterable[Finding] = ()
    ) -> None:
        """Writes the entries of the nodes; `succeeded` is None until the end."""
        if self._is_used():
            return
        pid = os.getpid()
        record = RunRecord(
            invocation=self.invocation,
            target=self.target,
            succeeded=succeeded,
            findings=tuple(findings),
            results=tuple(entries),
            seconds=time.monotonic() - self.began,
            process={"pid": pid, "process_start": process_start(pid)},
            arguments=self.arguments,
        )
        with suppress(UsageError):
            write_run_results(self.root / ARTIFACTS_FOLDER, record)

    def _is_used(self) -> bool:
        try:
            last = read_last(self.root / ARTIFACTS_FOLDER)
        except UsageError:
            return False
        return last.life is RunStatus.RUNNING and last.invocation_id != self.invocation.id
