"""The status of a project's queries, as text or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlstream.app.evolve.patches import patch_path
from sqlstream.app.status.lags_text import progress_json, progress_texts
from sqlstream.app.status.status import ProjectStatus, QueryWithStatus, RunStatus, RunWithStatus
from sqlstream.numbers import plural, since_text
from sqlstream.report.findings import finding_text
from sqlstream.report.run_text import Silent, query_table, silence_texts
from sqlstream.state.runs.tracked_run import LiveStatus

NO_RUN = "This folder has no record of a run."


def status_text(status: ProjectStatus, now: datetime, width: int | None) -> str:
    """Returns a line for each run, the table of the queries, the reasons why some emit no rows or have failed, and the
    progress of the queries.

    `now` has a time zone. `width` is that of the terminal (None: no limit).
    """
    heads = "\n".join(_run_line(run, now) for run in status.runs) or NO_RUN
    texts = [heads, *_recorded(status, now, width), *progress_texts(status.progress, now, width)]
    if status.unread is not None:
        texts.append(f"The checkpoints were not read:\n{finding_text(status.unread)}")
    return "\n\n".join(texts)


def _recorded(status: ProjectStatus, now: datetime, width: int | None) -> Iterator[str]:
    if status.queries:
        yield query_table([query.entry for query in status.queries], width)
    elif status.runs:
        yield "No query was started."
    for query in status.queries:
        yield from _alerts(query, now)
    violations = [line for query in status.queries for line in _violations(query)]
    if violations:
        yield "\n".join(violations)
    if status.patched:
        yield "\n".join(f"{source} has new fields, see {patch_path(source)}" for source in status.patched)
    yield from silence_texts(silent for query in status.queries if (silent := _silence_of(query)))
    for query in status.queries:
        yield from _notes(query, now)


def status_json(status: ProjectStatus, now: datetime) -> str:
    """Returns the status as one JSON object. `queries` are entries of run_results.json. `now` has a time zone."""
    content = {
        "succeeded": status.is_well,
        "runs": [
            {
                "invocation_id": seen.run.invocation_id,
                "life": str(seen.life),
                "target": seen.run.target,
                "pid": seen.run.pid,
                "began_at": seen.run.began_at,
                "heard_at": seen.run.heard_at,
                "succeeded": seen.run.succeeded,
            }
            for seen in status.runs
        ],
        "queries": [{**query.entry, "invocation_id": query.run.run.invocation_id} for query in status.queries],
        "checkpoints": progress_json(status.progress, now),
        "unread": status.unread.as_json() if status.unread else None,
    }
    return json.dumps(content, indent=2)


def _run_line(seen: RunWithStatus, now: datetime) -> str:
    run = seen.run
    of = f" of target {run.target}" if run.target else ""
    heard, lasting = _ago(run.heard_at, now), since_text(run.began_at, now)
    status = {
        RunStatus.RUNNING: f"has been running for {lasting} as process {run.pid}, last update {heard}",
        RunStatus.ENDED: f"{_ended(seen)} {heard}",
        RunStatus.KILLED: f"was killed: process {run.pid} ended without reporting a result, last update {heard}",
        RunStatus.ELSEWHERE: "has not reported a result, and ran on another machine, in another container or before a "
        f"restart of this one; last update {heard}",
    }[seen.life]
    return f"Run {run.invocation_id[:8]}{of} {status}"


def _ended(seen: RunWithStatus) -> str:
    if seen.is_refused:
        return "was rejected before any query started (see target/run_results.json), and ended"
    return "ended" if seen.run.succeeded else "failed, and ended"


def _silence_of(query: QueryWithStatus) -> Silent | None:
    silence = query.entry.get("silence")
    if not isinstance(silence, Mapping):
        return None
    has_ended, had_rows = query.status not in set(LiveStatus), bool(query.entry.get("rows_out"))
    return Silent(query.model, str(silence.get("text")), has_ended, had_rows)


def _alerts(query: QueryWithStatus, now: datetime) -> Iterator[str]:
    alerts = query.entry.get("alerts")
    for alert in alerts if isinstance(alerts, list) else ():
        if isinstance(alert, Mapping) and isinstance(alert.get("since"), str):
            yield f"ALERT {alert.get('alert')}, raised {since_text(alert['since'], now)} ago: {alert.get('message')}"


def _violations(query: QueryWithStatus) -> Iterator[str]:
    """Yields a line for each data test that rows of the newest run violate."""
    tests = query.entry.get("data_tests")
    for name, count in tests.items() if isinstance(tests, Mapping) else ():
        if count["failed"]:
            rows = f"{count['failed']:,} of {plural(count['passed'] + count['failed'], 'row')}"
            yield f"{query.model}: {rows} {'violates' if count['failed'] == 1 else 'violate'} {name}"


def _notes(query: QueryWithStatus, now: datetime) -> Iterator[str]:
    error, failure, at = (query.entry.get(key) for key in ("error", "last_failure", "failed_at"))
    if isinstance(error, Mapping):
        yield f"{query.model} failed {_ago(at or query.entry['heard_at'], now)}\n{recorded_finding_text(error)}"
    elif isinstance(failure, Mapping):
        restarts = plural(query.entry.get("restarts"), "restart")
        again = f"has had {restarts}" if query.entry.get("restarts") else "has failed"
        when = f", {_ago(at, now)}," if at else ""
        yield f"{query.model} {again}; its last error{when} was\n{recorded_finding_text(failure)}"


def recorded_finding_text(finding: Mapping[str, Any]) -> str:
    """Returns the three lines of a finding, given as JSON."""
    place = finding.get("location")
    where = f"{place['path']}:{place['line']}:{place['column']}: " if isinstance(place, Mapping) else ""
    head = f"{where}[{finding.get('code')}] {finding.get('message')}"
    return f"{head}\n  why: {finding.get('why')}{_input_text(finding)}\n  fix: {finding.get('fix')}"


def _input_text(finding: Mapping[str, Any]) -> str:
    """Returns the line with the file, or the position in a topic, of the row at which a query failed, if the finding
    does not name it elsewhere.
    """
    failure = finding.get("failure")
    found = (failure.get("file") or failure.get("position")) if isinstance(failure, Mapping) else None
    is_named = found is None or found in f"{finding.get('message')} {finding.get('why')}"
    return "" if is_named else f"\n  in: {found}"


def _ago(time: str, now: datetime) -> str:
    return f"{since_text(time, now)} ago"
