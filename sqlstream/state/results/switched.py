"""What `promote` and `rollback` have done, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Switched:
    """The current `version` of a query, and `before`, the one that was current. `outputs` are the paths or tables to
    which it writes.
    """

    model: str
    version: int
    before: int
    outputs: tuple[str, ...] = ()
