"""What the page reads of run_results.json: the target of a run, and why the newest run was refused."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlstream.report.runs.status import recorded_finding_text
from sqlstream.state.runs.events import Status
from sqlstream.state.runs.run_state import LiveStatus

_NOT_STARTED = {LiveStatus.PENDING, Status.SKIPPED}


def target_of_results(path: Path, invocation: str) -> str | None:
    """Returns the target of the run in run_results.json if it has this id, otherwise None."""
    metadata = _read(path).get("metadata", {})
    target = metadata.get("target")
    return str(target) if metadata.get("invocation_id") == invocation and target is not None else None


def refusal_of_results(path: Path, invocation: str) -> str | None:
    """Returns why the run with this id was refused before any query started, None if it was not, or if another run has
    written run_results.json since.
    """
    results = _read(path)
    states = {str(entry.get("status")) for entry in results.get("results", ())}
    is_refused = results.get("status") == "error" and states <= _NOT_STARTED and results.get("findings")
    if not is_refused or results.get("metadata", {}).get("invocation_id") != invocation:
        return None
    errors = [each for each in results["findings"] if each.get("severity") == "error"]
    return "\n".join(["the last run was refused before any query started:", *map(recorded_finding_text, errors)])


def _read(path: Path) -> Mapping[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
