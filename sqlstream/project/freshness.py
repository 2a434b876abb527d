"""The freshness check of a source table as values."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.location import Location

PERIOD_SECONDS = {"minute": 60, "hour": 3600, "day": 86_400}
"""dbt's periods, in seconds."""


@dataclass(frozen=True)
class Threshold:
    """An age of the newest data, such as 12 hours. `period` is a key of `PERIOD_SECONDS`."""

    count: int
    period: str

    @property
    def seconds(self) -> int:
        """The age in seconds."""
        return self.count * PERIOD_SECONDS[self.period]

    @property
    def text(self) -> str:
        """The age in words: `12 hours`."""
        return f"{self.count} {self.period}{'' if self.count == 1 else 's'}"


@dataclass(frozen=True)
class Expression:
    """SQL over the columns of a source, with its location."""

    sql: str
    location: Location


@dataclass(frozen=True)
class Freshness:
    """How old the newest data of a table can be, with at least one threshold.

    `loaded_at_field` is the time of a row, None for the time that the source itself records: of files, commits or
    records. `filter` selects the rows that count. `location` is that of the nearest `freshness:`.
    """

    warn_after: Threshold | None
    error_after: Threshold | None
    location: Location
    loaded_at_field: Expression | None = None
    filter: Expression | None = None

    @property
    def criteria(self) -> dict[str, object]:
        """The thresholds and the filter in the form of dbt's artifacts."""
        return {
            "warn_after": _criterion(self.warn_after),
            "error_after": _criterion(self.error_after),
            "filter": None if self.filter is None else self.filter.sql,
        }


def _criterion(threshold: Threshold | None) -> dict[str, object]:
    return {
        "count": None if threshold is None else threshold.count,
        "period": None if threshold is None else threshold.period,
    }
