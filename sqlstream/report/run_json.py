"""A run as JSON lines, for machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlstream.state.events import (
    Notice,
    ProjectFound,
    QueryRestarting,
    QueryResult,
    QueryStarted,
    RunEvent,
    TableShown,
    Warned,
)
from sqlstream.state.progress import BatchProgress

EVENT_NAMES: dict[type[RunEvent], str] = {
    ProjectFound: "run_started",
    Warned: "finding",
    QueryStarted: "query_started",
    BatchProgress: "batch",
    QueryRestarting: "query_restarting",
    QueryResult: "query_ended",
    Notice: "notice",
    TableShown: "memory_table",
}


class JsonReporter:
    """Writes each event as one line: `{"time": ..., "event": ..., ...}`, time in UTC, unknown figures as null."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: RunEvent) -> None:
        """Writes the line of `event`."""
        self.emit(EVENT_NAMES[type(event)], _fields(event))

    def done(self, results: Sequence[QueryResult], *, succeeded: bool) -> None:
        """Writes the last line of a run."""
        self.emit("done", {"succeeded": succeeded, "queries": len(results)})

    def emit(self, name: str, fields: dict[str, Any]) -> None:
        """Writes one line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        self._write(json.dumps({"time": now, "event": name, **fields}, default=str))


def _fields(event: RunEvent) -> dict[str, Any]:
    if isinstance(event, QueryResult):
        return {"model": event.model, **event.as_json()}
    if isinstance(event, Warned):
        return event.finding.as_json()
    if isinstance(event, QueryRestarting):
        return {**asdict(event), "finding": event.finding.as_json()}
    return asdict(event)
