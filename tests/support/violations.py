"""Rows for data tests, and the counts of what violates them."""

from __future__ import annotations

from typing import Any

from sqlstream.state.runs.progress import BatchProgress
from tests.spark.conftest import ProjectFolder


def order(id_: int, kind: str | None, amount: int | None) -> dict[str, Any]:
    """Returns an order."""
    return {"id": id_, "ts": "2024-01-01T00:00:00Z", "kind": kind, "amount": amount}


def counts(folder: ProjectFolder) -> dict[str, tuple[int, int]]:
    """Returns the rows that passed and failed each test, over all batches."""
    found: dict[str, tuple[int, int]] = {}
    for batch in (event for event in folder.events if isinstance(event, BatchProgress)):
        for name, count in batch.data_tests.items():
            passed, failed = found.get(name, (0, 0))
            found[name] = (passed + count["passed"], failed + count["failed"])
    return found
