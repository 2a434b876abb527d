"""Records `test` and `backfill` in target/run_results.json, so that `retry` can repeat what failed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlstream.app.loading.artifacts import RunRecord, write_run_results
from sqlstream.app.loading.load import Invocation
from sqlstream.app.runs.last import read_last
from sqlstream.errors import Finding, UsageError
from sqlstream.project.files.files import ARTIFACTS_FOLDER
from sqlstream.spark.storage.process_start import process_start
from sqlstream.state.runs.status import RunStatus


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
