"""The progress of a batch, from the JSON that Spark reports after it or from the journal, and the figures of a query:
what its batches add up to.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from sqlstream.figures import ADDED, DURATION_BUCKETS
from sqlstream.project.types.data_types import Struct, type_ddl
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.types.found_types import merge_found, read_found_type
from sqlstream.state.ledger import SourceUse
from sqlstream.state.sources.lag import add_lags, source_lag

ROWS_OUT = "sqlstream_rows_out"
"""The name of the observation of the rows that a query writes. Only some of Spark's sinks count them themselves."""

QUARANTINED_ROWS = "quarantined"
"""The name of the count of quarantined rows in that observation."""

DROPPED = "sqlstream_dropped_"
"""The prefix of observations that count dropped corrupt records, one for each reader."""

NEW_FIELDS = "sqlstream_new_fields_"
"""The prefix of observations that count the records of a source with fields that it does not declare, and the sets of
such fields. The name of the source, a slash and the name of the reader follow.
"""

TESTED = "sqlstream_data_tests_"
"""The prefix of observations that count the rows of a model and the violations of each of its data tests."""

TESTED_ROWS = "tested rows"
"""The name of the first count, which no test can have."""

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
    start_offset: str | None = None
    end_offset: str | None = None
    rows_in: int | None = None
    input_rows_per_second: float | None = None
    processed_rows_per_second: float | None = None
    lag: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class StateProgress:
    """The state of all stateful operators of a query after a batch, and the changes of the batch. `late_rows` are rows
    behind the watermark that Spark dropped. Spark counts them after it has aggregated each partition of the batch, so
    ten rows of one group may count as one. `commit_ms` is the time that tasks wrote changes to the checkpoint, added up
    over tasks; `partitions` is the most that an operator has. Both are None if Spark does not report them.
    `in_rocksdb`: all of it is in RocksDB.
    """

    operators: tuple[str, ...] = ()
    rows: int = 0
    updated_rows: int = 0
    removed_rows: int = 0
    memory_bytes: int = 0
    late_rows: int = 0
    commit_ms: int | None = None
    partitions: int | None = None
    in_rocksdb: bool = False


TestCount = Mapping[str, int]
"""The rows that `passed` and `failed` a data test."""


@dataclass(frozen=True)
class BatchProgress:
    """One batch of one query. `rows_in` counts the rows that its sources read and `rows_out` those that the model
    emitted, None if Spark does not know. `started_at`, `watermark` (the one that the batch used) and the oldest and
    newest event times are UTC, ISO 8601, None if they do not exist. If there are several watermarks, Spark reports the
    events of one.

    Durations are milliseconds; `parts_ms` has Spark's names (addBatch, queryPlanning, walCommit, ...). `state` is None
    for a stateless query. `dropped_records` counts the corrupt records of sources with `on_corrupt: drop`,
    `dropped_static` those of static tables; `rows_in` includes the others. `data_tests` has the rows that passed and
    failed each data test, as `model.test`. `new_field_rows` counts the records with fields that their sources do not
    declare, of sources with `schema_changes`; `new_fields` has the records with each of the most frequent ones, by
    source and field; `new_types` has the types of those that `schema_changes: evolve` declares, by source as DDL.
    `quarantined_rows` counts the rows that data tests sent to the quarantine of the model. `core_ms` and `tasks` are
    the time that tasks of the query occupied a core since the previous batch, added up, and their number; `cores` is
    what Spark had at the end; `longest_task_ms` is the time of the longest of these tasks. They are None if unknown.

    Has each figure of `FIGURES` under its name, except those of the query.
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
    data_tests: Mapping[str, TestCount] = field(default_factory=dict)
    new_field_rows: int = 0
    quarantined_rows: int = 0
    new_fields: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    new_types: Mapping[str, str] = field(default_factory=dict)
    core_ms: int | None = None
    tasks: int | None = None
    cores: int | None = None
    longest_task_ms: int | None = None

    @property
    def violations(self) -> int:
        """The violations of all data tests."""
        return sum(count["failed"] for count in self.data_tests.values())

    @property
    def late_rows(self) -> int:
        """The rows that were dropped behind the watermark."""
        return self.state.late_rows if self.state else 0

    @property
    def state_rows(self) -> int | None:
        """The rows in the state, None without one."""
        return self.state.rows if self.state else None

    @property
    def state_bytes(self) -> int | None:
        """The memory of the state, None without one."""
        return self.state.memory_bytes if self.state else None

    @property
    def state_commit_ms(self) -> int | None:
        """The time that tasks wrote changes of the state, added up; None without one, or if unknown."""
        return self.state.commit_ms if self.state else None

    @property
    def add_batch_ms(self) -> int:
        """The time for reading, computing and writing the rows."""
        return self.parts_ms.get("addBatch", 0)

    @property
    def input_ms(self) -> int:
        """The time for finding input."""
        return sum(self.parts_ms.get(name, 0) for name in _FINDING)

    @property
    def planning_ms(self) -> int:
        """The time for planning the batch."""
        return self.parts_ms.get("queryPlanning", 0)

    @property
    def wal_ms(self) -> int:
        """The time for writing offsets and commits to the checkpoint."""
        return sum(self.parts_ms.get(name, 0) for name in _WAL)

    @property
    def other_ms(self) -> int:
        """The rest of the duration."""
        known = self.input_ms + self.planning_ms + self.add_batch_ms + self.wal_ms
        return max(self.duration_ms - known, 0)

    @property
    def lag_by_unit(self) -> dict[str, int]:
        """What the sources have not read yet, as far as they report it."""
        return add_lags(source.lag for source in self.sources)

    @property
    def lag(self) -> int | None:
        """The records of Kafka that the sources have not read yet, None if unknown."""
        return self.lag_by_unit.get("records")

    @property
    def lag_files(self) -> None:
        """None: the run reads it after the batch, because Spark does not report it."""

    @property
    def lag_bytes(self) -> None:
        """None, as `lag_files`."""

    @property
    def lag_versions(self) -> None:
        """None, as `lag_files`."""

    def by_source(self) -> dict[str, tuple[SourceProgress, ...]]:
        """Returns the readers of each source: a table may have several."""
        found: dict[str, tuple[SourceProgress, ...]] = {}
        for source in self.sources:
            found[source.name] = (*found.get(source.name, ()), source)
        return found


_FINDING = ("latestOffset", "getOffset", "getBatch")
_WAL = ("walCommit", "commitOffsets", "commitBatch")


def stored_batch(fields: Mapping[str, Any]) -> BatchProgress:
    """Returns the batch in a line of the journal, or in an entry of run_results.json. Earlier versions wrote fewer
    fields, and called the lag `backlog`. Raises: KeyError, TypeError, ValueError, AttributeError for another form.
    """
    state, sources = fields.get("state"), fields.get("sources") or ()
    known = {
        "rows_in": None,
        "rows_out": None,
        "watermark": None,
        "duration_ms": 0,
        **_known(BatchProgress, fields),
        "model": str(fields.get("model")),
        "batch_id": int(fields["batch_id"]),
        "state": StateProgress(**_known(StateProgress, state)) if state else None,
        "sources": tuple(
            SourceProgress(
                **{
                    "name": "",
                    "description": "",
                    "lag": source.get("backlog") or {},
                    **_known(SourceProgress, source),
                }
            )
            for source in sources
        ),
    }
    return BatchProgress(**known)


def _known(kind: type[BatchProgress | StateProgress | SourceProgress], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: fields[name] for name in kind.__dataclass_fields__ if fields.get(name) is not None}


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
        rows_out=_rows_out(data, observed),
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
        data_tests=data_tests_in(observed),
        new_field_rows=_observed(observed, NEW_FIELDS),
        quarantined_rows=(observed.get(ROWS_OUT) or {}).get(QUARANTINED_ROWS) or 0,
        new_fields=_new_fields(observed),
        new_types=_new_types(observed),
    )


def _rows_out(data: Mapping[str, Any], observed: Mapping[str, Any]) -> int | None:
    """Returns the rows that the query has written: those observed, or those that the sink has counted."""
    found: Mapping[str, int] | None = observed.get(ROWS_OUT)
    if found is not None:
        return found.get("rows")
    counted: int = (data.get("sink") or {}).get("numOutputRows", -1)
    return counted if counted >= 0 else None


def data_tests_in(observed: Mapping[str, Any]) -> dict[str, TestCount]:
    """Returns the counts of each data test in the observed metrics of a batch, by `model.test`."""
    return dict(_test_counts(observed))


def _test_counts(observed: Mapping[str, Any]) -> Iterator[tuple[str, TestCount]]:
    for name, row in observed.items():
        model, counts = name.removeprefix(TESTED), dict(row or {})
        rows = counts.pop(TESTED_ROWS, None) if model != name else None
        for test, failed in counts.items() if rows is not None else ():
            yield f"{model}.{test}", {"passed": rows - failed, "failed": failed}


def _new_fields(observed: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for name, row in observed.items():
        source = name.removeprefix(NEW_FIELDS).rpartition("/")[0]
        for each in (row or {}).get("sets") or () if name.startswith(NEW_FIELDS) else ():
            # the rows without new fields have null as their set
            for new in json.loads(each["item"] or "[]"):
                fields = found.setdefault(source, {})
                fields[new] = fields.get(new, 0) + each["count"]
    return found


def _new_types(observed: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, row in observed.items():
        source = name.removeprefix(NEW_FIELDS).rpartition("/")[0]
        for each in (row or {}).get("types") or () if name.startswith(NEW_FIELDS) else ():
            kind = read_found_type(each["item"] or "")
            if kind is not None:
                found[source] = merged_types(found.get(source), type_ddl(kind))
    return found


def merged_types(one: str | None, other: str) -> str:
    """Returns the types of the new fields in two batches, as DDL: of at most `FIELDS_KEPT`, and without those that
    would make it too long.
    """
    if one is None:
        return other
    merged = merge_found(parse_type(one), parse_type(other))
    text = type_ddl(Struct(merged.fields[:FIELDS_KEPT]) if isinstance(merged, Struct) else merged)
    return one if len(text) > LONGEST_TYPES else text


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
        commit_ms=added("commitTimeMs") if all("commitTimeMs" in operator for operator in operators) else None,
        partitions=max((operator.get("numShufflePartitions") or 0 for operator in operators), default=0) or None,
        in_rocksdb=all(
            any(name.startswith("rocksdb") for name in operator.get("customMetrics") or {}) for operator in operators
        ),
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


FIELDS_KEPT = 100
"""The most new fields of a source whose sums are kept, those of most records: ids as names have no end."""

LONGEST_TYPES = 20_000
"""The most characters of the types of new fields of a source."""

RATES_KEPT = 20
"""The number of rates to keep, one per batch: as many as a small chart shows."""

EPOCH_YEAR, YEAR_SECONDS = 1970, 365.2425 * 86_400


@dataclass(frozen=True)
class SilentSpan:
    """The input since the last batch that emitted a row. `batches` counts those that read rows, `rows_in` their rows,
    by reader in `source_rows`. `idle_batches` counts the latest batches without rows, by reader. `has_earlier_rows`:
    the state had rows of earlier runs, which may be older than `oldest_event`.
    """

    batches: int = 0
    rows_in: int | None = 0
    late_rows: int = 0
    updated_rows: int = 0
    removed_rows: int = 0
    oldest_event: str | None = None
    source_rows: tuple[tuple[str, int | None], ...] = ()
    idle_batches: tuple[tuple[str, int], ...] = ()
    has_earlier_rows: bool = False


@dataclass(frozen=True)
class Figures:
    """The figures of a query since its first start in a run: the sums of those in `ADDED`, the newest event time (UTC,
    ISO 8601), the last batch, the rates of the latest batches in rows per second, and the reasons of its `quiet` time.
    Sums are None if Spark does not know a part of them. Dropped records of a static table count once, because each
    batch reads it again: `dropped_static` is the most that one batch dropped.

    `durations` counts batches by the first of `DURATION_BUCKETS` that is not exceeded; the last count is of longer
    batches. `newest_event_at` is the start of the batch that read the newest event. `parts_ms`, `source_rows`,
    `data_tests` and `new_fields` are sums by the names of parts, sources, tests and fields. `new_types` has the types
    of all new fields, by source.
    """

    batches: int = 0
    sums: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(ADDED, 0))
    dropped_static: int = 0
    durations: tuple[int, ...] = (0,) * (len(DURATION_BUCKETS) + 1)
    parts_ms: Mapping[str, int] = field(default_factory=dict)
    source_rows: Mapping[str, int] = field(default_factory=dict)
    newest_event: str | None = None
    newest_event_at: str | None = None
    last: BatchProgress | None = None
    rates: tuple[float, ...] = ()
    quiet: SilentSpan = field(default_factory=SilentSpan)
    data_tests: Mapping[str, TestCount] = field(default_factory=dict)
    new_fields: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    new_types: Mapping[str, str] = field(default_factory=dict)

    @property
    def watermark_lag_seconds(self) -> float | None:
        """How far the watermark is behind the newest event time; None without one of them."""
        watermark = moment(self.last.watermark if self.last else None)
        newest = moment(self.newest_event)
        return None if watermark is None or newest is None else max((newest - watermark).total_seconds(), 0.0)


def add_batch(figures: Figures, batch: BatchProgress) -> Figures:
    """Returns `figures` with one more batch."""
    quiet = figures.quiet
    if figures.batches == 0 and batch.state is not None:
        # the rows that the state had when the run began
        before = batch.state.rows + batch.state.removed_rows - batch.state.updated_rows
        quiet = replace(quiet, has_earlier_rows=before > 0)
    sums = {name: total((figures.sums[name], getattr(batch, name))) for name in ADDED}
    counted_before = min(figures.dropped_static, batch.dropped_static)
    sums["dropped_records"] = (sums["dropped_records"] or 0) - counted_before
    newest = max(filter(None, (figures.newest_event, batch.newest_event)), key=_order, default=None)
    bucket = bisect_left(DURATION_BUCKETS, batch.duration_ms / 1000)
    read = {name: sum(each.rows_in or 0 for each in readers) for name, readers in batch.by_source().items()}
    return Figures(
        batches=figures.batches + 1,
        sums=sums,
        dropped_static=max(figures.dropped_static, batch.dropped_static),
        durations=tuple(count + (number == bucket) for number, count in enumerate(figures.durations)),
        parts_ms=_added(figures.parts_ms, batch.parts_ms),
        source_rows=_added(figures.source_rows, read),
        newest_event=newest,
        newest_event_at=figures.newest_event_at if newest == figures.newest_event else batch.started_at,
        last=batch,
        rates=(*figures.rates, batch.input_rows_per_second or 0.0)[-RATES_KEPT:],
        # None is an unknown number, so there may be rows
        quiet=SilentSpan() if batch.rows_out != 0 else _add_quiet(quiet, batch),
        data_tests=_added_each(figures.data_tests, batch.data_tests),
        new_fields={
            source: dict(sorted(counts.items(), key=lambda each: -each[1])[:FIELDS_KEPT])
            for source, counts in _added_each(figures.new_fields, batch.new_fields).items()
        },
        new_types={
            **figures.new_types,
            **{source: merged_types(figures.new_types.get(source), kind) for source, kind in batch.new_types.items()},
        },
    )


def _added_each(
    known: Mapping[str, Mapping[str, int]], more: Mapping[str, Mapping[str, int]]
) -> dict[str, Mapping[str, int]]:
    return {**known, **{name: _added(known.get(name, {}), counts) for name, counts in more.items()}}


def _added(known: Mapping[str, int], more: Mapping[str, int]) -> dict[str, int]:
    return {name: known.get(name, 0) + more.get(name, 0) for name in {**known, **more}}


def _order(time: str) -> float:
    return epoch_seconds(time) or 0.0


def _add_quiet(quiet: SilentSpan, batch: BatchProgress) -> SilentSpan:
    state = batch.state
    rows = dict(quiet.source_rows)
    for source in batch.sources:  # a table may have several readers
        rows[source.name] = total((rows.get(source.name, 0), source.rows_in))
    added = replace(
        quiet,
        batches=quiet.batches + (batch.rows_in != 0),
        rows_in=total((quiet.rows_in, batch.rows_in)),
        oldest_event=min(filter(None, (quiet.oldest_event, batch.oldest_event)), default=None),
        source_rows=tuple(rows.items()),
        idle_batches=_idle_batches(quiet, batch) if batch.rows_in != 0 else quiet.idle_batches,
    )
    if state is None:
        return added
    return replace(
        added,
        late_rows=quiet.late_rows + batch.late_rows,
        updated_rows=quiet.updated_rows + state.updated_rows,
        removed_rows=quiet.removed_rows + state.removed_rows,
    )


def _idle_batches(quiet: SilentSpan, batch: BatchProgress) -> tuple[tuple[str, int], ...]:
    before = dict(quiet.idle_batches)
    active = {source.name for source in batch.sources if source.rows_in != 0}
    names = dict.fromkeys(source.name for source in batch.sources)
    return tuple((name, 0 if name in active else before.get(name, 0) + 1) for name in names)


def epoch_seconds(text: str | None) -> float | None:
    """Returns the time that Spark wrote in seconds since 1970, to the year if it is outside the years 1 to 9999."""
    time = moment(text)
    far = None if time is not None or text is None else _FAR.match(text)
    if far is not None:
        return (int(far[1]) - EPOCH_YEAR) * YEAR_SECONDS
    return None if time is None else time.timestamp()


_FAR = re.compile(r"([+-]\d+)-\d\d-\d\dT")


def moment(text: str | None) -> datetime | None:
    """Returns the time that Spark wrote, None if Python cannot represent it (years beyond 9999)."""
    try:
        return None if text is None else datetime.fromisoformat(text)
    except ValueError:
        return None
