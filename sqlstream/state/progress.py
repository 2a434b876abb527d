"""What a batch did, from the JSON that Spark reports after it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

ROWS_OUT = "sqlstream_rows_out"
"""The name of the observation on each terminal model: file sinks do not count what they write."""


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query.

    `rows_in` are the rows its sources read and `rows_out` the rows the model gave, None where Spark does not know.
    `started_at` is UTC, ISO 8601; `watermark` is too, None without one. Durations are milliseconds.
    """

    model: str
    batch_id: int
    started_at: str
    duration_ms: int
    rows_in: int | None
    rows_out: int | None
    watermark: str | None


def read_progress(model: str, text: str) -> BatchProgress:
    """Returns the progress of `model` in `text`, a `StreamingQueryProgress` as JSON."""
    data = json.loads(text)
    observed = (data.get("observedMetrics") or {}).get(ROWS_OUT) or {}
    watermark = (data.get("eventTime") or {}).get("watermark")
    return BatchProgress(
        model=model,
        batch_id=data["batchId"],
        started_at=data["timestamp"],
        duration_ms=data.get("batchDuration") or (data.get("durationMs") or {}).get("triggerExecution", 0),
        rows_in=total(_rows_read(source) for source in data["sources"]),
        rows_out=observed.get("rows"),
        watermark=None if watermark in (None, "1970-01-01T00:00:00.000Z") else watermark,
    )


def _rows_read(source: Mapping[str, Any]) -> int | None:
    """The rows that one reader read.

    When the optimizer has dropped the reader from the plan (`where false`), Spark reports 0 rows although the offsets
    moved on over files; nobody counted those rows.
    """
    rows = source.get("numInputRows", -1)
    moved = source.get("startOffset") != source.get("endOffset")
    if rows == 0 and moved and str(source.get("description", "")).startswith("FileStreamSource"):
        return None
    return rows if rows >= 0 else None


def total(counts: Iterable[int | None]) -> int | None:
    """Returns the sum of `counts`, or None when one of them is not known."""
    found = list(counts)
    return None if None in found else sum(count for count in found if count is not None)
