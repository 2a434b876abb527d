"""Formats a run as JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import Any

from sqlstream.errors import Finding
from sqlstream.report.findings import findings_json
from sqlstream.report.rows import json_text
from sqlstream.report.unit_tests_json import result_entry
from sqlstream.state.runs.events import (
    AlertChanged,
    Notice,
    QueriesSelected,
    QueryNotRun,
    QueryRestarting,
    QueryResult,
    QueryResumed,
    QuerySilent,
    QueryStarted,
    QueryWaiting,
    RunEvent,
    RunStarting,
    TableShown,
    UnitTestEnded,
    UnitTestsSelected,
    UnitTestStarted,
    WarningEmitted,
)
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.times import utc_now

EVENT_NAMES: dict[type[RunEvent], str] = {
    RunStarting: "run_started",
    WarningEmitted: "finding",
    UnitTestsSelected: "unit_tests_chosen",
    UnitTestStarted: "unit_test_started",
    UnitTestEnded: "unit_test_ended",
    QueriesSelected: "queries_chosen",
    QueryNotRun: "query_not_run",
    QueryStarted: "query_started",
    BatchProgress: "batch",
    QueryWaiting: "query_waiting",
    QuerySilent: "query_silent",
    QueryRestarting: "query_restarting",
    QueryResumed: "query_restarted",
    QueryResult: "query_ended",
    Notice: "notice",
    AlertChanged: "alert",
    TableShown: "memory_table",
}


_NOT_ASCII = re.compile(r"[^\x00-\x7f]")


class JsonReporter:
    """Writes each event as one line: `{"time": ..., "event": ..., ...}`, with the time in UTC and null for unknown."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write

    def __call__(self, event: RunEvent) -> None:
        """Writes the line of `event`. Does not repeat why a query emits no rows."""
        if not isinstance(event, QuerySilent) or event.is_new:
            self.emit(event_name(event), event_fields(event))

    def done(self, queries: int, tests: int = 0, *, succeeded: bool) -> None:
        """Writes the last line of a run. Only a build has unit tests."""
        self.emit("done", {"succeeded": succeeded, "queries": queries, **({"unit_tests": tests} if tests else {})})

    def emit(self, name: str, fields: dict[str, Any]) -> None:
        """Writes one line."""
        self._write(to_line(name, fields))


def outcome_json(
    command: str,
    invocation_id: str | None,
    entries: Iterable[Mapping[str, object]],
    findings: Iterable[Finding],
    *,
    succeeded: bool,
) -> str:
    """Returns the outcome of a run or a build as one JSON object; `entries` are those of run_results.json. If findings
    refuse the command, it has no invocation and no entries.
    """
    outcome = {
        "command": command,
        "invocation_id": invocation_id,
        "succeeded": succeeded,
        "findings": findings_json(findings),
        "results": list(entries),
    }
    return json_text(outcome, indent=2)


def event_name(event: RunEvent) -> str:
    """Returns the name of an event in JSON lines."""
    return EVENT_NAMES[type(event)]


def to_line(name: str, fields: Mapping[str, Any]) -> str:
    """Returns an event as one line of JSON in ASCII, with the time in UTC."""
    text = json_text({"time": utc_now(), "event": name, **fields})
    return _NOT_ASCII.sub(lambda found: json.dumps(found.group())[1:-1], text)


def event_fields(event: RunEvent) -> dict[str, Any]:
    """Returns the fields of an event as plain JSON values."""
    if isinstance(event, QueryResult):
        return {"model": event.model, **event.as_json()}
    if isinstance(event, WarningEmitted):
        return event.finding.as_json()
    if isinstance(event, QueryRestarting):
        return {**asdict(event), "finding": event.finding.as_json()}
    if isinstance(event, QuerySilent):
        return {"model": event.model, **event.silence.as_json()}
    if isinstance(event, QueryNotRun):
        return event.as_json()
    if isinstance(event, UnitTestStarted):
        return {**asdict(event.test), "index": event.index, "total": event.total}
    if isinstance(event, UnitTestEnded):
        return {**result_entry(event.result), **asdict(event.test), "index": event.index, "total": event.total}
    return asdict(event)
