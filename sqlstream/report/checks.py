"""The lines of `sqlstream debug`."""

from __future__ import annotations

NAME_WIDTH = 8
"""Characters that the longest name of a check takes."""


def check_text(name: str, ok: bool, found: str, fix: str) -> str:
    """Returns `ok     Java     17.0.15 (/usr/bin/java)`, with the fix below it where it is not ok."""
    line = f"{'ok' if ok else 'ERROR':<6} {name:<{NAME_WIDTH}} {found}"
    return line if ok or not fix else f"{line}\n  fix: {fix}"
