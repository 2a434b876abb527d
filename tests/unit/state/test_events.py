"""The result of a query in run_results.json."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.state.runs.events import QueryResult, Status

RESULT = QueryResult(
    model="orders",
    unique_id="model.shop.orders",
    index=1,
    total=1,
    status=Status.SUCCESS,
    batches=2,
    rows_in=10,
    rows_out=None,
    seconds=3.14159,
    output="/data/orders",
    checkpoint="/data/queries/orders/v1/checkpoint",
)


def test_a_result_is_plain_json() -> None:
    """In the JSON of a result, unknown numbers are null, never 0 or -1."""
    assert json.loads(json.dumps(RESULT.as_json())) == {
        "kind": "stream",
        "unique_id": "model.shop.orders",
        "status": "success",
        "batches": 2,
        "rows_in": 10,
        "rows_out": None,
        "late_rows": 0,
        "dropped_records": 0,
        "restarts": 0,
        "duration_seconds": 3.142,
        "output": "/data/orders",
        "checkpoint": "/data/queries/orders/v1/checkpoint",
        "error": None,
        "reason": None,
    }


def test_an_error_contains_its_finding() -> None:
    """The error of a result is its finding, in the same form as in all other JSON."""
    finding = Finding("query-failed", "it failed", "no disk", "make room", Location("models/orders.sql", 3, 2))

    assert replace(RESULT, status=Status.ERROR, finding=finding).as_json()["error"] == finding.as_json()


@pytest.mark.parametrize("status", Status)
def test_only_a_skipped_query_was_not_started(status: Status) -> None:
    """A query that failed to start counts as started."""
    assert replace(RESULT, status=status).started is (status is not Status.SKIPPED)
