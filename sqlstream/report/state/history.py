"""Formats the history of a query as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.report.numbers import plural
from sqlstream.report.runs.query_table import time_text
from sqlstream.report.table import table_text
from sqlstream.state.results.history import QueryHistory, VersionHistory

_SWITCHES = ("at", "command", "current version", "before")
_HEADER = ("since", "what run did", "changes", "sqlstream", "Spark")


def history_text(history: QueryHistory) -> str:
    """Returns a table of changes for each version, the newest version first, and a table of switches."""
    if not history.versions:
        return f"{history.model} has no checkpoint yet"
    texts = [_version(each) for each in reversed(history.versions)]
    if history.switches:
        rows = [(_time(each.at), each.action, str(each.version), str(each.before)) for each in history.switches]
        texts.append(f"switches\n\n{table_text(_SWITCHES, rows)}")
    return "\n\n".join(texts)


def _version(version: VersionHistory) -> str:
    part = f" ({version.part})" if version.part else ""
    head = f"version {version.version}{part}: {plural(version.batches, 'batch', 'batches')}"
    head += f", output {version.output}" if version.output else ""
    rows = [
        (
            _time(entry.at),
            f"{entry.action} (accepted)" if entry.accepted else entry.action,
            "; ".join(entry.changes) or "-",
            entry.sqlstream_version,
            entry.spark_version,
        )
        for entry in version.entries
    ]
    if not rows:
        rows = [(_time(version.written_at), version.reason or "-", "-", "-", "-")]
    return f"{head}\n\n{table_text(_HEADER, rows)}"


def _time(text: str | None) -> str:
    return "-" if text is None else f"{time_text(text)} UTC"


def history_json(history: QueryHistory) -> str:
    """Returns the history as one JSON object, the oldest version first."""
    return json.dumps(asdict(history), indent=2)
