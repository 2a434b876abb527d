"""Reads the error of the project's Python code from the traceback in Spark's error."""

from __future__ import annotations

import re
from pathlib import PurePath

_TRACEBACK = re.compile(r"(?m)^.*Traceback \(most recent call last\):\n((?:[ \t].*\n|\n)*)(\S.*)")
_FRAME = re.compile(r'(?m)^\s*File "(.+)", line (\d+), in (\S+)$')


def python_exception(text: str) -> str | None:
    """Returns the last exception in the tracebacks of `text` and where it was raised, on one line; None without one."""
    traces = _TRACEBACK.findall(text)
    if not traces:
        return None
    frames, raised = traces[-1]
    places = _FRAME.findall(frames)
    if not places:
        return str(raised)
    path, line, function = places[-1]
    return f"{raised} ({PurePath(path).name} line {line}, in {function})"
