"""The lines of `sqlstream debug`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

NAME_WIDTH = 9
"""The length of the longest name of a check."""


def check_text(name: str, ok: bool, found: str, fix: str) -> str:
    """Returns `OK     Java      17.0.15 (/usr/bin/java)`, followed by the fix if it is not OK."""
    line = f"{'OK' if ok else 'ERROR':<6} {name:<{NAME_WIDTH}} {found}"
    return line if ok or not fix else f"{line}\n  fix: {fix}"


def checks_json(checks: Sequence[Mapping[str, object]]) -> str:
    """Returns the checks, mappings of `name`, `ok`, `found` and `fix`, as one JSON object."""
    return json.dumps({"succeeded": all(check["ok"] for check in checks), "checks": list(checks)}, indent=2)
