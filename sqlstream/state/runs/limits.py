"""The limits of a run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RunLimits:
    """When a run ends, and how many queries run at once. It ends after `for_seconds`, when no query has read anything
    for `until_idle_seconds`, or with `fail_fast` at the first failure; None disables a limit. At most `threads` bounded
    queries run at once; None uses the target's setting.
    """

    for_seconds: float | None = None
    until_idle_seconds: float | None = None
    fail_fast: bool = False
    threads: int | None = None


NO_LIMITS = RunLimits()
"""A run that ends when all its queries have ended."""
