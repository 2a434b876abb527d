"""Warns, once for each query and run, if its state grows out of proportion or needs more memory, or one task holds up
its batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlstream.app.observe.observers import Observed, Snapshot
from sqlstream.compiler.allowances import lowered
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, Severity
from sqlstream.numbers import bytes_text, span_text
from sqlstream.project.configuration.target import Target
from sqlstream.spark.jvm.state_store import MAX_MEGABYTES, heap_bytes, needed_bytes, overhead_megabytes, rocksdb_bytes
from sqlstream.state.runs.events import QueryStarted, WarningEmitted
from sqlstream.state.runs.progress import BatchProgress

MANY_ROWS = 1_000_000
"""Smaller state is no problem, however it grows."""
KEPT_SHARE = 0.5
"""If the state keeps this share of all rows that a run has read, it hardly combines or removes rows."""
HEAP_SHARE = 0.5
"""State in Java's heap takes at most this share: each batch also needs memory, for a new version of the state."""

SLOW_ROW_MS = 0.3
"""A changed row takes a tenth of this time on a core, unless RocksDB has too little memory, or a function is slow."""

SKEWED_BATCHES = 5
"""The number of batches in a row after which skew is no accident."""
LEAST_CORE_MS = 5_000
"""Batches with less work are not worth tuning, and one slow file makes them look skewed."""
LEAST_PARTITIONS = 4
"""With fewer partitions, one of them has a large share in any case."""
TASK_SHARE, TIME_SHARE = 0.5, 0.5
"""The longest task takes this share of the time of all tasks, and of the duration of its batch."""


@dataclass
class _Seen:
    """What a query has done so far in a run: the rows read, the rows in its state at the start, batches with skew."""

    rows_in: int = 0
    rows_at_start: int | None = None
    skewed: int = 0


class StateGrowth:
    """An observer that emits the warnings."""

    name = "the warnings about state"

    def __init__(self, compiled: CompiledProject, emit: Callable[[WarningEmitted], None]) -> None:
        self._models: Mapping[str, CompiledModel] = {model.name: model for model in compiled.models.values()}
        self._project, self._emit = compiled.project, emit
        self._heap_bytes, self._rocksdb_bytes = (
            heap_bytes(compiled.project.target),
            rocksdb_bytes(compiled.project.target),
        )
        self._seen: dict[str, _Seen] = {}
        self._reported: set[tuple[str, str]] = set()

    def observe(self, seen: Observed) -> None:
        """Looks at a batch."""
        event = seen.event
        if isinstance(event, QueryStarted):
            self._seen[event.model] = _Seen()
        if isinstance(event, BatchProgress) and event.model in self._models:
            found = self._seen.setdefault(event.model, _Seen())
            for finding in self._findings(self._models[event.model], found, event):
                self._report(event.model, finding)

    def tick(self, now: Snapshot) -> None:
        """Does nothing."""

    def close(self, last: Snapshot) -> None:
        """Does nothing."""

    def _report(self, model: str, finding: Finding) -> None:
        if (model, finding.code) not in self._reported:
            self._reported.add((model, finding.code))
            for each in lowered(self._project, [finding]):
                self._emit(WarningEmitted(each))

    def _findings(self, model: CompiledModel, seen: _Seen, batch: BatchProgress) -> Iterator[Finding]:
        why = self._why_large(seen, batch)
        if why is not None and batch.state is not None:
            yield _growing(model, batch.state.rows, why, in_rocksdb=batch.state.in_rocksdb)
        if self._rocksdb_bytes is not None and needed_memory(batch) > self._rocksdb_bytes:
            yield _lacking_memory(model, batch, needed_memory(batch), self._rocksdb_bytes, self._project.target)
        seen.skewed = seen.skewed + 1 if is_skewed(batch) else 0
        if seen.skewed >= SKEWED_BATCHES:
            yield _skewed(model, batch)

    def _why_large(self, seen: _Seen, batch: BatchProgress) -> str | None:
        """Returns why the state is larger than it should be, None if it is not."""
        state = batch.state
        if state is None:
            return None
        if seen.rows_at_start is None:
            seen.rows_at_start = max(state.rows - state.updated_rows, 0)
        seen.rows_in += batch.rows_in or 0
        if not state.in_rocksdb and self._heap_bytes and state.memory_bytes > HEAP_SHARE * self._heap_bytes:
            heap = bytes_text(self._heap_bytes)
            return f"it takes {bytes_text(state.memory_bytes)} of Java's heap of {heap}, which batches need, too"
        added = state.rows - seen.rows_at_start
        if added >= max(MANY_ROWS, KEPT_SHARE * seen.rows_in):
            return f"it has {added:,} rows more than at the start of the run, which has read {seen.rows_in:,} rows"
        return None


def is_skewed(batch: BatchProgress) -> bool:
    """Returns whether one task of a batch with state takes as long as all others together, and most of the batch."""
    if batch.core_ms is None or batch.longest_task_ms is None or batch.state is None:
        return False
    is_large = batch.core_ms >= LEAST_CORE_MS and (batch.state.partitions or 0) >= LEAST_PARTITIONS
    longest = batch.longest_task_ms
    return is_large and longest >= TASK_SHARE * batch.core_ms and longest >= TIME_SHARE * batch.duration_ms


def needed_memory(batch: BatchProgress) -> int:
    """Returns the memory that RocksDB needs for the state of a slow batch, in bytes; 0 for other batches."""
    state = batch.state
    if state is None or not state.in_rocksdb or not state.partitions or not state.updated_rows:
        return 0
    is_slow = (batch.core_ms or 0) >= max(LEAST_CORE_MS, SLOW_ROW_MS * state.updated_rows)
    return needed_bytes(state.rows // state.partitions) if is_slow else 0


def _lacking_memory(model: CompiledModel, batch: BatchProgress, needed: int, limit: int, target: Target) -> Finding:
    rows, changed = (0, 0) if batch.state is None else (batch.state.rows, batch.state.updated_rows)
    more = -(-(needed - limit) // 1024**2)
    overhead = round(overhead_megabytes(target.spark)) + more
    beside = "" if target.is_local else f" and `spark.executor.memoryOverhead: {overhead}m`"
    return Finding(
        "state-memory",
        f"RocksDB has too little memory for the state of `{model.name}`",
        f"with {limit // 1024**2:,} MB for {rows:,} rows it probably reads parts of its files again for each row: "
        f"batch {batch.batch_id} took {span_text((batch.core_ms or 0) / 1000)} of a core to change {changed:,} rows",
        f"set `{MAX_MEGABYTES}: {limit // 1024**2 + more}`{beside} in `spark` of the target; or divide the state into "
        f"more partitions with `sqlstream state repartition {model.name}`",
        model.file.location,
        Severity.WARNING,
    )


def _growing(model: CompiledModel, rows: int, why: str, *, in_rocksdb: bool) -> Finding:
    bound = "give it an end: a watermark, with its time among the keys or in the join condition"
    heap = (
        "; or set a larger spark.driver.memory; or set `spark.sql.streaming.stateStore.providerClass` to RocksDB in "
        f"the target, and begin a new checkpoint with `sqlstream run --full-refresh --select {model.name}`"
    )
    return Finding(
        "growing-state",
        f"the state of `{model.name}` has {rows:,} rows",
        why,
        bound if in_rocksdb else bound + heap,
        model.file.location,
        Severity.WARNING,
    )


def _skewed(model: CompiledModel, batch: BatchProgress) -> Finding:
    longest, total = (batch.longest_task_ms or 0) / 1000, (batch.core_ms or 0) / 1000
    return Finding(
        "skewed-tasks",
        f"one task takes most of the time of the batches of `{model.name}`",
        f"in batch {batch.batch_id}, the longest of {batch.tasks:,} tasks took {span_text(longest)} of the "
        f"{span_text(total)} of all of them, as in the batches before",
        f"find frequent keys with `sqlstream state size {model.name}` and group by one more column, or filter them; if "
        "the source has one large file or partition, divide it",
        model.file.location,
        Severity.WARNING,
    )
