"""How old the newest data of a source is, and whether that is too old."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from sqlstream.errors import Finding
from sqlstream.project.configuration.freshness import Freshness

NEVER = datetime(1, 1, 1, tzinfo=UTC)
"""The time of the newest data of a source without data, as in dbt: it exceeds each threshold."""


class FreshnessStatus(StrEnum):
    """The result of a check, in dbt's words."""

    PASS = "pass"  # noqa: S105 - not a password
    WARN = "warn"
    ERROR = "error"
    RUNTIME_ERROR = "runtime error"


@dataclass(frozen=True)
class Measured:
    """The time of the newest data of a source, `NEVER` without data, and when it was looked up (both UTC)."""

    max_loaded_at: datetime
    snapshotted_at: datetime

    @property
    def age_seconds(self) -> float:
        """The age of the newest data; negative if its time is in the future."""
        return (self.snapshotted_at - self.max_loaded_at).total_seconds()


@dataclass(frozen=True)
class SourceFreshness:
    """The check of one source table. `measured` is None if its freshness is unknown; `finding` then has the reason."""

    unique_id: str
    name: str
    freshness: Freshness
    started_at: datetime
    seconds: float
    measured: Measured | None = None
    finding: Finding | None = None

    @property
    def status(self) -> FreshnessStatus:
        """The result of the check."""
        return FreshnessStatus.RUNTIME_ERROR if self.measured is None else judge(self.freshness, self.measured)


@dataclass(frozen=True)
class FreshnessResults:
    """The checks of one command, in order, the command's id, and its start and duration."""

    results: Sequence[SourceFreshness]
    invocation_id: str
    started_at: datetime
    seconds: float

    @property
    def succeeded(self) -> bool:
        """Whether no source is older than its `error_after`, and the freshness of each is known."""
        return all(each.status in (FreshnessStatus.PASS, FreshnessStatus.WARN) for each in self.results)


def judge(freshness: Freshness, measured: Measured) -> FreshnessStatus:
    """Returns the status of a source; an age equal to a threshold passes, as in dbt."""
    age, error, warn = measured.age_seconds, freshness.error_after, freshness.warn_after
    if error is not None and age > error.seconds:
        return FreshnessStatus.ERROR
    return FreshnessStatus.WARN if warn is not None and age > warn.seconds else FreshnessStatus.PASS
