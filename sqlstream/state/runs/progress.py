"""The progress of a batch, from the JSON that Spark reports after it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlstream.state.ledger import SourceUse
from sqlstream.state.progress.lag import source_lag

ROWS_OUT = "sqlstream_rows_out"
"""The name of the observation on each terminal model. File sinks do not count the rows that they write."""

DROPPED = "sqlstream_dropped_"
"""The prefix of observations that count dropped corrupt records, one for each reader."""

DROPPED_STATIC = f"{DROPPED}static_"
"""The prefix for readers of static tables, which every batch of a stream reads again."""

BEFORE_WATERMARK = "1970-01-01T00:00:00.000Z"
"""The watermark that Spark reports until the first event."""


@dataclass(frozen=True)
class SourceProgress:
    """The progress of one reader in a batch. `name` is the table in sources.yml if that is certain, otherwise Spark's
    description. Offsets are Spark's JSON. Rates are in rows per second. `lag` is what the reader has not read yet,
    as far as Spark reports it: `records` of Kafka.
    """

    name: str
    description: str
    start_offset: str | None
    end_offset: str | None
    rows_in: int | None
    input_rows_per_second: float | None
    processed_rows_per_second: float | None
    lag: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StateProgress:
    """The state of all stateful operators of a query after a batch, and the changes of the batch. `late_rows` are rows
    behind the watermark that Spark dropped. Spark counts them after it has aggregated each partition of the batch, so
    ten rows of one group may count as one.
    """

    operators: tuple[str, ...]
    rows: int
    updated_rows: int
    removed_rows: int
    memory_bytes: int
    late_rows: int


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query. `rows_in` counts the rows that its sources read and `rows_out` those that the model
    emitted, None if Spark does not know. `started_at`, `watermark` (the one that the batch used) and the oldest and
    newest event times are UTC, ISO 8601, None if they do not exist. If there are several watermarks, Spark reports the
    events of one.

    Durations are milliseconds; `parts_ms` has Spark's names (addBatch, queryPlanning, walCommit, ...). `state` is None
    for a stateless query. `dropped_records` counts the corrupt records of sources with `on_corrupt: drop`,
    `dropped_static` those of static tables; `rows_in` includes the others.
    """

    model: str
    batch_id: int
    started_at: str
    duration_ms: int
    rows_in: int | None
    rows_out: int | None
    watermark: str | None
    oldest_event: str | None = None
    newest_event: str | None = None
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    parts_ms: Mapping[str, int] = field(default_factory=dict)
    state: StateProgress | None = None
    sources: tuple[SourceProgress, ...] = ()
    dropped_records: int = 0
    dropped_static: int = 0


def read_progress(
    model: str, text: str, uses: Sequence[SourceUse] = (), redact: Callable[[str], str] = str
) -> BatchProgress:
    """Returns the progress of `model` in `text`, a `StreamingQueryProgress` as JSON. `uses` are the readers of the
    query, which name its sources. `redact` removes secrets from texts.
    """
    data = json.loads(text)
    observed = data.get("observedMetrics") or {}
    times = data.get("eventTime") or {}
    parts = data.get("durationMs") or {}
    return BatchProgress(
        model=model,
        batch_id=data["batchId"],
        started_at=data["timestamp"],
        duration_ms=data.get("batchDuration") or parts.get("triggerExecution", 0),
        rows_in=total(_rows_read(source) for source in data["sources"]),
        rows_out=(observed.get(ROWS_OUT) or {}).get("rows"),
        watermark=None if times.get("watermark") == BEFORE_WATERMARK else times.get("watermark"),
        oldest_event=times.get("min"),
        newest_event=times.get("max"),
        input_rows_per_second=_rate(data, "inputRowsPerSecond"),
        processed_rows_per_second=_rate(data, "processedRowsPerSecond"),
        parts_ms=parts,
        state=_state(data.get("stateOperators") or ()),
        sources=tuple(_source(source, uses, redact) for source in data["sources"]),
        dropped_records=_observed(observed, DROPPED),
        dropped_static=_observed(observed, DROPPED_STATIC),
    )


def _observed(observed: Mapping[str, Any], prefix: str) -> int:
    return sum((row or {}).get("rows") or 0 for name, row in observed.items() if name.startswith(prefix))


def _state(operators: Sequence[Mapping[str, Any]]) -> StateProgress | None:
    if not operators:
        return None

    def added(name: str) -> int:
        return sum(max(operator.get(name, 0), 0) for operator in operators)

    return StateProgress(
        operators=tuple(operator.get("operatorName", "") for operator in operators),
        rows=added("numRowsTotal"),
        updated_rows=added("numRowsUpdated"),
        removed_rows=added("numRowsRemoved"),
        memory_bytes=added("memoryUsedBytes"),
        late_rows=added("numRowsDroppedByWatermark"),
    )


def _source(source: Mapping[str, Any], uses: Sequence[SourceUse], redact: Callable[[str], str]) -> SourceProgress:
    description = redact(str(source.get("description", "")))
    return SourceProgress(
        name=_table(str(source.get("description", "")), uses) or description,
        description=description,
        start_offset=_offset(source.get("startOffset"), redact),
        end_offset=_offset(source.get("endOffset"), redact),
        rows_in=_rows_read(source),
        input_rows_per_second=_rate(source, "inputRowsPerSecond"),
        processed_rows_per_second=_rate(source, "processedRowsPerSecond"),
        lag=source_lag(source),
    )


def _table(description: str, uses: Sequence[SourceUse]) -> str | None:
    """Returns the table of a reader, which Spark describes as `FileStreamSource[file:/data/in]`; None if ambiguous."""
    tables = {use.table for use in uses}
    if len(tables) > 1:
        described = description.partition("[")[2].removesuffix("]")
        read = _plain_path(re.sub(r"\\(.)", r"\1", described))  # special characters of a path are escaped
        tables = {use.table for use in uses if use.path is not None and _plain_path(use.path) == read}
    return next(iter(tables)) if len(tables) == 1 else None


def _plain_path(path: str) -> str:
    """Returns the same path for `file:/data/in`, `file:///data/in` and `/data/in/`."""
    return "/" + path.removeprefix("file:").strip("/") if path.startswith(("file:", "/")) else path.rstrip("/")


def _offset(offset: object, redact: Callable[[str], str]) -> str | None:
    return None if offset is None else redact(offset if isinstance(offset, str) else json.dumps(offset))


def _rate(data: Mapping[str, Any], name: str) -> float | None:
    """Returns a rate, None if it is infinite."""
    try:
        rate = float(data.get(name, "nan"))
    except (TypeError, ValueError):
        return None
    return rate if math.isfinite(rate) else None


def _rows_read(source: Mapping[str, Any]) -> int | None:
    """Returns the number of rows that a reader read. If the optimizer has removed the reader from the plan (`where
    false`), Spark reports 0 rows although the offsets advanced, so the number is unknown.
    """
    rows = source.get("numInputRows", -1)
    moved = source.get("startOffset") != source.get("endOffset")
    if rows == 0 and moved and str(source.get("description", "")).startswith("FileStreamSource"):
        return None
    return rows if rows >= 0 else None


def total(counts: Iterable[int | None]) -> int | None:
    """Returns the sum of `counts`, or None if one of them is unknown."""
    found = list(counts)
    return None if None in found else sum(count for count in found if count is not None)
