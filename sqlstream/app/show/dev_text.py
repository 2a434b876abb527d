"""The output of `sqlstream dev` after each change."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlstream.errors import Finding
from sqlstream.numbers import plural, seconds_text
from sqlstream.report.findings import findings_text
from sqlstream.report.rows import rows_text
from sqlstream.state.preview import ShownRows

SHOWN_PATHS = 3
"""The number of changed files to name. After switching a branch there may be hundreds."""


def refreshed_text(
    at: datetime,
    changed: Sequence[str],
    nodes: Sequence[ShownRows],
    findings: Sequence[Finding],
    seconds: float,
    width: int | None,
) -> str:
    """Returns a line with the time and the changed files, then the findings and the rows, and a blank line."""
    parts = [f"{at:%H:%M:%S}  {_changes(changed)} ({seconds_text(seconds)})"]
    if findings:
        parts.append(findings_text(findings))
    parts += [f"{rows_text(node, width)}\n" for node in nodes]
    return "\n".join(parts) + ("" if nodes else "\n")


def _changes(changed: Sequence[str]) -> str:
    if not changed:
        return "Watching the project files; press Ctrl-C to stop"
    others = len(changed) - SHOWN_PATHS
    more = f" and {plural(others, 'other file')}" if others > 0 else ""
    return f"Changed: {', '.join(changed[:SHOWN_PATHS])}{more}"
