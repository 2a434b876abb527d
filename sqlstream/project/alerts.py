"""The kinds of alerts, and their rules as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AlertKind(StrEnum):
    """The conditions of a query that alerts are about, as in YAML."""

    NO_ROWS_FOR = "no_rows_for"
    LAG_OVER = "lag_over"
    WATERMARK_BEHIND = "watermark_behind"
    WATERMARK_AHEAD = "watermark_ahead"
    FAILED = "failed"
    RESTARTS_OVER = "restarts_over"
    LATE_ROWS_OVER = "late_rows_over"
    STATE_ROWS_OVER = "state_rows_over"
    BATCH_SLOWER = "batch_slower_than_trigger"
    QUARANTINED_OVER = "quarantined_over"


@dataclass(frozen=True)
class AlertRule:
    """When an alert of one kind is raised: when the value is over `limit` (seconds for times, otherwise a count; of
    slow batches in a row) for `for_seconds`. It is resolved at `resolve_at` or less. `unit` is what `lag_over` counts.
    Kinds that count events count those of the last `per_seconds`. A rule that is not `is_on` replaces another one.
    """

    limit: float = 0.0
    resolve_at: float = 0.0
    for_seconds: float = 0.0
    per_seconds: float = 0.0
    unit: str = ""
    is_on: bool = True
