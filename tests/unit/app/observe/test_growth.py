"""Warnings about state that grows out of proportion, and about tasks that hold up their batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from sqlstream import ProjectRequest
from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.observe.growth import StateGrowth
from sqlstream.app.observe.observers import Observed
from sqlstream.errors import Finding
from sqlstream.state.runs.events import QueryStarted, RunEvent
from sqlstream.state.runs.progress import BatchProgress, StateProgress
from tests.support.batches import batch

FILES = {
    "project.yml": """name: shop
targets:
  local:
    storage: store
    spark: {spark.driver.memory: 1000m, spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB: 192}
""",
    "sources.yml": "sources:\n  - {name: shop, tables: [{name: orders, format: json, path: in, schema: id int}]}\n",
    "sinks.yml": "sinks:\n  - {name: out, format: noop}\n",
    "models/orders.sql": "{{ config(sink='out') }}\nselect id from {{ source('shop', 'orders') }}\n",
}
HEAP = 1_000 * 1024**2
NOW = datetime(2024, 1, 1, tzinfo=UTC)


class Warned:
    """The warnings of a run with one query."""

    def __init__(self, folder: Path, allowed: str = "") -> None:
        (folder / "models").mkdir(parents=True)
        for name, text in FILES.items():
            (folder / name).write_text(allowed + text if name.startswith("models") else text)
        self.found: list[Finding] = []
        compiled = load_for_reading(ProjectRequest(folder)).compiled
        self._growth = StateGrowth(compiled, lambda event: self.found.append(event.finding))
        self.see(QueryStarted("orders", 1, 1, "out", "1 second"))

    def see(self, *events: RunEvent) -> list[str]:
        """Passes on events, and returns the codes of all warnings so far."""
        for event in events:
            self._growth.observe(Observed(NOW, event, None))
        return [finding.code for finding in self.found]


def grown(rows: int, updated: int, rows_in: int, memory: int = 0, *, in_rocksdb: bool = True) -> BatchProgress:
    """Returns a batch after which the state has `rows` rows."""
    state = StateProgress(("stateStoreSave",), rows, updated, 0, memory, 0, None, 8, in_rocksdb)
    return batch(rows_in=rows_in, state=state)


def worked(longest_ms: int, core_ms: int = 10_000, partitions: int = 8, duration_ms: int = 7_000) -> BatchProgress:
    """Returns a batch whose longest task takes `longest_ms`."""
    state = StateProgress(("stateStoreSave",), 1, 1, 0, 0, 0, None, partitions)
    known = batch(state=state, core_ms=core_ms, tasks=16, longest_task_ms=longest_ms)
    return replace(known, duration_ms=duration_ms)


def test_state_that_keeps_what_it_reads_is_reported_once(tmp_path: Path) -> None:
    """A warning comes once the state has a million rows more than at the start of the run, and half of what it read."""
    run = Warned(tmp_path)

    assert run.see(grown(5_600_000, 600_000, 600_000), grown(5_999_999, 399_999, 400_000)) == []
    assert run.see(grown(6_000_000, 1, 1)) == ["growing-state"]
    assert run.see(grown(9_000_000, 3_000_000, 3_000_000)) == ["growing-state"]
    assert "1,000,000 rows more" in run.found[0].why


def test_large_state_that_combines_rows_is_fine(tmp_path: Path) -> None:
    """State in proportion to the rows is no problem, and neither is that of earlier runs."""
    assert Warned(tmp_path / "sums").see(grown(2_000_000, 2_000_000, 5_000_000)) == []
    assert Warned(tmp_path / "old").see(grown(50_000_000, 100, 100), grown(50_000_100, 100, 100)) == []


def test_state_in_the_heap_has_a_limit(tmp_path: Path) -> None:
    """State that takes more than half of Java's heap is reported, unless it is in RocksDB."""
    assert Warned(tmp_path / "heap").see(grown(9, 9, 9, HEAP // 2, in_rocksdb=False)) == []
    assert Warned(tmp_path / "more").see(grown(9, 9, 9, HEAP // 2 + 1, in_rocksdb=False)) == ["growing-state"]
    assert Warned(tmp_path / "rocksdb").see(grown(9, 9, 9, 2 * HEAP)) == []


def slow(rows: int, core_ms: int = 30_000, *, in_rocksdb: bool = True) -> BatchProgress:
    """Returns a batch that changes 70,000 of `rows` rows in two partitions."""
    state = StateProgress(("stateStoreSave",), rows, 70_000, 0, 0, 0, None, 2, in_rocksdb)
    return batch(rows_in=10 * rows, state=state, core_ms=core_ms, tasks=4, longest_task_ms=1)


def test_state_that_is_too_large_for_rocksdb(tmp_path: Path) -> None:
    """A warning comes if partitions have so many rows that their filters do not fit into the memory of RocksDB, and the
    batch is slow.
    """
    run = Warned(tmp_path)

    assert run.see(slow(2_400_000), slow(9_000_000, 20_000), slow(9_000_000, in_rocksdb=False)) == []
    assert run.see(slow(3_000_000), slow(9_000_000)) == ["state-memory"]
    assert "with 192 MB for 3,000,000 rows" in run.found[0].why
    assert "maxMemoryUsageMB: 229`" in run.found[0].fix
    assert "spark.executor.memoryOverhead" not in run.found[0].fix


def test_a_comment_allows_it(tmp_path: Path) -> None:
    """A comment in the model hides the warning."""
    run = Warned(tmp_path, "-- sqlstream: allow growing-state because there is a large machine\n")

    assert run.see(grown(2_000_000, 2_000_000, 2_000_000)) == []


def test_a_task_that_holds_up_five_batches_is_reported(tmp_path: Path) -> None:
    """A warning comes after five batches in a row in which one task takes half of the time."""
    run = Warned(tmp_path)

    assert run.see(*[worked(5_000)] * 4, worked(4_999), *[worked(5_000)] * 4) == []
    assert run.see(worked(6_000), worked(6_000)) == ["skewed-tasks"]


@pytest.mark.parametrize(
    "batch_without_skew",
    [
        worked(4_000, core_ms=4_999),  # little work
        worked(6_000, partitions=2),
        worked(6_000, duration_ms=13_000),  # something else takes the time
        replace(worked(6_000), longest_task_ms=None),
        replace(worked(6_000), state=None),
    ],
)
def test_other_batches_are_not_skewed(tmp_path: Path, batch_without_skew: BatchProgress) -> None:
    """Small batches, few partitions and batches that wait for something else are not reported."""
    assert Warned(tmp_path).see(*[batch_without_skew] * 6) == []
