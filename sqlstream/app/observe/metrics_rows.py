"""A batch as a row of metrics, with the columns of `METRICS_COLUMNS`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC

from sqlstream.app.observe.samples import RunFacts
from sqlstream.compiler.metrics import METRICS_COLUMNS
from sqlstream.state.runs.figures import moment
from sqlstream.state.runs.progress import BatchProgress, SourceProgress
from sqlstream.state.runs.run_state import QueryState

MetricsRow = tuple[object, ...]

METRICS_SCHEMA = ", ".join(f"{name} {type_}" for name, type_, _ in METRICS_COLUMNS)
"""The columns of the rows in Spark's DDL."""

_WAL = ("walCommit", "commitOffsets", "commitBatch")


def metrics_row(facts: RunFacts, invocation_id: str, batch: BatchProgress, query: QueryState | None) -> MetricsRow:
    """Returns the row of a batch; `query` is the state of its query after it."""
    time = moment(batch.started_at)
    values = {
        "time": time,
        "date": None if time is None else time.astimezone(UTC).date(),
        "project": facts.project,
        "target": facts.target,
        "model": batch.model,
        "invocation_id": invocation_id,
        "batch_id": batch.batch_id,
        **_durations(batch),
        "rows_in": batch.rows_in,
        "rows_out": batch.rows_out,
        "late_rows": batch.state.late_rows if batch.state else 0,
        "dropped_records": batch.dropped_records,
        "input_rows_per_second": batch.input_rows_per_second,
        "processed_rows_per_second": batch.processed_rows_per_second,
        "watermark": moment(batch.watermark),
        "watermark_lag_seconds": query.figures.lag_seconds if query else None,
        "newest_event": moment(batch.newest_event),
        "state_rows": batch.state.rows if batch.state else None,
        "state_bytes": batch.state.memory_bytes if batch.state else None,
        "restarts": query.restarts if query else 0,
        "sources": json.dumps([_source(source) for source in batch.sources]),
    }
    return tuple(values[name] for name, _, _ in METRICS_COLUMNS)


def _durations(batch: BatchProgress) -> Mapping[str, int]:
    parts = batch.parts_ms
    add, planning = parts.get("addBatch", 0), parts.get("queryPlanning", 0)
    wal = sum(parts.get(name, 0) for name in _WAL)
    return {
        "duration_ms": batch.duration_ms,
        "add_batch_ms": add,
        "planning_ms": planning,
        "wal_ms": wal,
        "other_ms": max(batch.duration_ms - add - planning - wal, 0),
    }


def _source(source: SourceProgress) -> dict[str, object]:
    return {
        "name": source.name,
        "rows_in": source.rows_in,
        "start_offset": source.start_offset,
        "end_offset": source.end_offset,
        "lag": dict(source.lag),
    }
