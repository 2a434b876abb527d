"""Earlier runs of a project, read from the journal and from run_results.json.

Torn entries and entries in a form that this version does not write are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from sqlstream.state.runs.events import NO_OP
from sqlstream.state.runs.progress import BatchProgress

PROGRESS_KEYS = tuple(BatchProgress.__dataclass_fields__)
"""The fields of a batch's progress in the journal."""

QUERY_KINDS = ("stream", "batch", None)
"""The kinds of entries about queries. Early versions wrote no kind."""

NOT_RUNS = ("test", "backfill")
"""The commands in run_results.json that start no queries."""


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
        line = _read(text)
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


def _read(text: str) -> dict[str, Any]:
    try:
        line = json.loads(text)
    except ValueError:
        return {}
    return line if isinstance(line, dict) else {}
