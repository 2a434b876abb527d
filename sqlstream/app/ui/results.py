"""The target of a run whose start is no longer in the journal, from run_results.json."""

from __future__ import annotations

import json
from pathlib import Path


def target_of_results(path: Path, invocation: str) -> str | None:
    """Returns the target of the run in run_results.json if it has this id, otherwise None."""
    try:
        metadata = json.loads(path.read_bytes())["metadata"]
        return str(metadata["target"]) if metadata["invocation_id"] == invocation else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
