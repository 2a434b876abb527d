"""The width of the lines of runs and unit tests."""

from __future__ import annotations

LINE_WIDTH = 88
"""The position of `[RUN]`, `[SUCCESS]` and so on, so that they form a column."""


def node_line(index: int, total: int, what: str, end: str) -> str:
    """Returns the line of a node, in dbt's style: `1 of 3 START stream orders ..... [RUN]`."""
    start = f"{index} of {total} {what} "
    return f"{start.ljust(LINE_WIDTH, '.')} [{end}]" if len(start) < LINE_WIDTH else f"{start}[{end}]"
