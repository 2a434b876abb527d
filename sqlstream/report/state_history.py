"""Formats the history of a query as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.report.numbers import plural
from sqlstream.report.table import table_text
from sqlstream.state.results.history import QueryHistory, VersionHistory

_HEADER = ("since", "what run did", "changes", "sqlstream", "Spark")


def history_text(history: QueryHistory) -> str:
    """Returns a table of changes for each version, the newest version first."""
    if not history.versions:
        return f"{history.model} has no checkpoint yet"
    return "\n\n".join(_version(each) for each in reversed(history.versions))


def _version(version: VersionHistory) -> str:
    part = f" ({version.part})" if version.part else ""
    head = f"version {version.version}{part}: {plural(version.batches, 'batch', 'batches')}"
    head += f", output {version.output}" if version.output else ""
    rows = [
        (
            entry.at,
            f"{entry.action} (accepted)" if entry.accepted else entry.action,
            "; ".join(entry.changes) or "-",
            entry.sqlstream_version,
            entry.spark_version,
        )
        for entry in version.entries
    ]
    if not rows:
        rows = [(version.written_at or "-", version.reason or "-", "-", "-", "-")]
    return f"{head}\n\n{table_text(_HEADER, rows)}"


def history_json(history: QueryHistory) -> str:
    """Returns the history as one JSON object, the oldest version first."""
    return json.dumps(asdict(history), indent=2)
