"""The events of a small run."""

from __future__ import annotations

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.state.runs.events import Notice, QueryRestarting, QueryResult, QueryStarted, RunEvent, Status, TableShown
from sqlstream.state.runs.progress import BatchProgress

FAILURE = Finding(
    "query-failed",
    "the query of `poor` failed in batch 1",
    "no disk",
    "make room",
    Location("models/poor.sql", 3, 2),
)
BIG = QueryResult(
    model="big",
    unique_id="model.shop.big",
    index=1,
    total=3,
    status=Status.SUCCESS,
    batches=2,
    rows_in=12345,
    rows_out=None,
    seconds=3.2,
    output="/project/.sqlstream/local/big",
    checkpoint="/project/.sqlstream/local/queries/big/v1/checkpoint",
)
POOR = QueryResult(
    model="poor",
    unique_id="model.shop.poor",
    index=2,
    total=3,
    status=Status.ERROR,
    batches=1,
    rows_in=5,
    rows_out=5,
    seconds=125.0,
    output="s3a://bucket/poor",
    checkpoint="/c",
    finding=FAILURE,
    restarts=3,
)
LATE = QueryResult(
    model="late",
    unique_id="model.shop.late",
    index=3,
    total=3,
    status=Status.SKIPPED,
    batches=0,
    rows_in=0,
    rows_out=0,
    seconds=0.0,
    output="/project/late",
    checkpoint="/c",
)
RESULTS = (BIG, POOR, LATE)
BATCH = BatchProgress(
    model="big",
    batch_id=0,
    started_at="2024-01-01T12:00:00.000Z",
    duration_ms=840,
    rows_in=1234,
    rows_out=None,
    watermark="2024-01-01T00:54:00.000Z",
)
EVENTS: tuple[RunEvent, ...] = (
    QueryStarted("big", 1, 3, "lake", "10 seconds"),
    BATCH,
    QueryRestarting("poor", 1, 3, 1.3, FAILURE),
    Notice("poor: restarts as version 2"),
    *RESULTS,
    TableShown("totals", ("kind", "total"), (("a", 12), ("b", 8)), 30),
)
