"""What the page shows of one query now, from its newest entry in the journal."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlstream.history.lines import backlog_of

SPARK_POINTS = 40
"""The number of batches in a small chart."""

SPARKS = ("at_ms", "input_rate", "duration_ms", "state_rows")

IDLE_SECONDS = 15.0
"""A running query without a batch for this time, and for three of its usual spans, has the rate 0."""

_VERSION = re.compile(r"/v([1-9][0-9]*)/checkpoint/?\Z")


@dataclass
class LiveQuery:
    """One query of one target. `entry` is its newest entry, as in run_results.json, with its current `status`; `run` is
    the run that wrote it. `charts` are the latest values of small charts, `lag` is the backlog from its checkpoint.
    """

    number: int
    model: str
    run: int | None = None
    heard_at: str = ""
    entry: Mapping[str, Any] = field(default_factory=dict)
    status: str | None = None
    charts: deque[tuple[Any, ...]] = field(default_factory=lambda: deque(maxlen=SPARK_POINTS))
    lag: Mapping[str, int] | None = None
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        """Whether the query runs now."""
        return self.status == "running"

    @property
    def version(self) -> int | None:
        """The version of the query that runs, from the path of its checkpoint; None if unknown."""
        match = _VERSION.search(str(self.entry.get("checkpoint") or ""))
        return int(match.group(1)) if match else None

    @property
    def is_idle(self) -> bool:
        """Whether the last batch is so long ago that nothing flows now."""
        if not self.is_running or not self.charts:
            return True
        at_ms, duration = self.charts[-1][0], self.charts[-1][2] or 0
        span = (at_ms - self.charts[-2][0]) / 1000 if len(self.charts) > 1 else 0.0
        return bool(time.time() - (at_ms + duration) / 1000 > max(IDLE_SECONDS, 3 * span))

    def source_rates(self) -> dict[str, tuple[float, int]]:
        """Returns the rows per second of each table that the query reads now, and its number of readers."""
        found: dict[str, tuple[float, int]] = {}
        for source in [] if self.is_idle else self._sources():
            rate, readers = found.get(str(source.get("name")), (0.0, 0))
            found[str(source.get("name"))] = rate + (source.get("input_rows_per_second") or 0.0), readers + 1
        return found

    def output_rate(self) -> float:
        """Returns the rows per second that the query emits now."""
        rows_in, rows_out = self._progress.get("rows_in"), self._progress.get("rows_out")
        rate = self._progress.get("input_rows_per_second")
        if self.is_idle or not rows_out:
            return 0.0
        if rows_in and rate:
            return float(rate) * float(rows_out) / float(rows_in)
        return 1000.0 * float(rows_out) / max(self._progress.get("duration_ms") or 0, 1)

    @property
    def _progress(self) -> Mapping[str, Any]:
        return self.entry.get("progress") or {}

    def _sources(self) -> Sequence[Mapping[str, Any]]:
        return self._progress.get("sources") or ()

    def now(self, run: str | None, quarantined_rows: int | None, quarantines: Sequence[str]) -> dict[str, Any]:
        """Returns the query as the page shows it. `run` is the id of its run's invocation, and `quarantines` are the
        queries that have written `quarantined_rows`.
        """
        entry, progress = self.entry, self._progress
        state = progress.get("state") or {}
        return {
            **_of_entry(entry),
            "model": self.model,
            "run": run,
            "status": self.status,
            "heard_at": self.heard_at or None,
            "version": self.version,
            "quarantined_rows": quarantined_rows,
            "quarantines": list(quarantines),
            "input_rate": 0.0 if progress and self.is_idle else progress.get("input_rows_per_second"),
            "processed_rate": progress.get("processed_rows_per_second"),
            "output_rate": self.output_rate(),
            "duration_ms": progress.get("duration_ms"),
            "parts_ms": progress.get("parts_ms") or {},
            "backlog": backlog_of(self._sources()) or self.lag,
            "watermark": progress.get("watermark"),
            "state_rows": state.get("rows"),
            "state_bytes": state.get("memory_bytes"),
            "last_batch_id": progress.get("batch_id"),
            "last_batch_at": progress.get("started_at"),
            "alerts": list(self.alerts.values()),
            "spark": self._spark(),
        }

    def _spark(self) -> dict[str, list[Any]]:
        columns = list(zip(*self.charts, strict=True)) or [()] * len(SPARKS)
        return {name: list(values) for name, values in zip(SPARKS, columns, strict=True) if name != "at_ms"}


_ENTRY_NAMES = (
    "unique_id",
    "kind",
    "trigger",
    "sink",
    "output",
    "batches",
    "restarts",
    "started_at",
    "duration_seconds",
    "rows_in",
    "rows_out",
    "late_rows",
    "dropped_records",
    "newest_event",
    "watermark_lag_seconds",
    "silence",
    "error",
    "last_failure",
)


def _of_entry(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: entry.get(name) for name in _ENTRY_NAMES}
