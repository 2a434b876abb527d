"""The result of a backfill, or what it would do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.state.backfill.record import SourceHistory


@dataclass(frozen=True)
class BackfilledBatch:
    """One batch of history. `rows_in` and `rows_out` are None if Spark does not know them, and before it has run.
    `is_completed`: an earlier command had begun it.
    """

    batch: int
    sources: Mapping[str, SourceHistory]
    rows_in: int | None = None
    rows_out: int | None = None
    is_completed: bool = False


@dataclass(frozen=True)
class Backfilled:
    """The batches of a backfill of a version of a query. With `dry_run`, nothing was written. `notes` are sentences
    without a period.
    """

    model: str
    version: int
    since: str | None
    until: str | None
    batches: tuple[BackfilledBatch, ...]
    dry_run: bool = False
    notes: tuple[str, ...] = ()
