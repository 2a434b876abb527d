"""Batches as Spark reports them, for tests."""

from __future__ import annotations

from typing import Any

from sqlstream.state.runs.progress import BatchProgress, Figures, SourceProgress, StateProgress, add_batch


def batch(rows_in: int | None = 5, rows_out: int | None = 0, **known: Any) -> BatchProgress:
    """Returns a batch of the query `orders`; `known` are more fields."""
    return BatchProgress(
        "orders", 0, "2024-01-01T12:00:00.000Z", 100, rows_in, rows_out, **{"watermark": None, **known}
    )


def state(
    updated: int = 1, late: int = 0, removed: int = 0, operator: str = "stateStoreSave", rows: int | None = None
) -> StateProgress:
    """Returns the state after a batch: without `rows`, it had none before."""
    return StateProgress((operator,), updated - removed if rows is None else rows, updated, removed, 1000, late)


def source(name: str, rows: int | None) -> SourceProgress:
    """Returns the progress of a reader."""
    return SourceProgress(name, f"Source[{name}]", None, "1", rows, None, None)


def figures(*batches: BatchProgress) -> Figures:
    """Returns the totals of all batches."""
    found = Figures()
    for each in batches:
        found = add_batch(found, each)
    return found
