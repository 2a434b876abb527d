"""What bounds a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunLimits:
    """When a run ends, and how much of it goes on at once.

    It ends after `after_seconds`, or when no query has had anything to read for `idle_seconds`, or with `fail_fast` at
    the first failure; None: not for that reason. At most `threads` queries that end by themselves run at once; None: as
    many as the target says.
    """

    after_seconds: float | None = None
    idle_seconds: float | None = None
    fail_fast: bool = False
    threads: int | None = None


NO_LIMITS = RunLimits()
"""A run that ends when all its queries have."""
