"""Formats what `promote` and `rollback` have done as text or JSON."""

from __future__ import annotations

import json
from dataclasses import asdict

from sqlstream.state.results.switched import Switched


def switched_text(done: Switched) -> str:
    """Returns a line for the version, and one for each place where readers find it."""
    lines = [f"{done.model}: version {done.version} is the current one (was version {done.before})"]
    lines += [f"   its rows are in {path}" for path in done.outputs]
    return "\n".join(lines)


def switched_json(done: Switched) -> str:
    """Returns the same as one JSON object."""
    return json.dumps(asdict(done), indent=2)
