"""What `promote` and `rollback` have done, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Switched:
    """The current `version` of a query, and `before`, the one that was current. `outputs` are the paths or tables to
    which it writes. `holder` is the process that still runs the version before. `behind` says in words what the current
    version has not read yet, and `problems` why plain names cannot show it.
    """

    model: str
    version: int
    before: int
    outputs: tuple[str, ...] = ()
    holder: str | None = None
    behind: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
