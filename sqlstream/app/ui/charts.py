"""The charts of a query: its values over time, when it did not run, and whether it keeps up."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from typing import Any

from sqlstream.app.ui.live_runs import LiveQuery
from sqlstream.app.ui.project_view import SeenProject
from sqlstream.history.series import NAMES, SeriesRequest, read_series
from sqlstream.history.stops import read_stops
from sqlstream.history.verdict import RunningFacts, read_verdict
from sqlstream.project.configuration.trigger import MAPPED, TRIGGERS, WORDS
from sqlstream.report.query_cost import has_batch_limit
from sqlstream.state.runs.tracked_run import LiveStatus
from sqlstream.web.server.protocol import Span

RECENT_SECONDS = 60.0
"""A range that ends so long ago at most reaches until now."""

ALIVE = frozenset(LiveStatus)


def charts_of(
    connection: sqlite3.Connection,
    seen: SeenProject,
    model: str,
    live: LiveQuery | None,
    guards: Sequence[int],
    span: Span,
) -> dict[str, Any]:
    """Returns the values of the charts of a query. `live` is the query as it is now, None if it has not run; `guards`
    are the numbers of the queries that write the corrupt records of its sources.
    """
    number = live.number if live is not None else 0
    alive_run = live.run if live is not None and live.status in ALIVE else None
    stops = read_stops(connection, number, span.from_ms, span.to_ms, alive_run)
    names = tuple(name for name in span.names if name in NAMES) or NAMES
    shown = tuple(stop for stop in stops if stop.is_visible(span.from_ms, span.to_ms))
    request = SeriesRequest(number, span.from_ms, span.to_ms, span.points, names, tuple(guards), shown)
    verdict = read_verdict(connection, number, span.from_ms, span.to_ms, stops, _facts(seen, model, live, span))
    return {
        **read_series(connection, request).as_json(),
        "stops": [stop.as_json() for stop in shown],
        "verdict": verdict.as_json(),
    }


def _facts(seen: SeenProject, model: str, live: LiveQuery | None, span: Span) -> RunningFacts:
    """Returns what the verdict about a query depends on beside its batches."""
    now = time.time()
    if live is None:
        return RunningFacts(now, is_running=False)
    begun, done = live.open_batch, live.batch
    is_open = begun is not None and (done is None or begun[0] > done.batch_id)  # it may have ended since it was read
    kind = str(live.entry.get("trigger") or "").partition(" ")[0]
    trigger = TRIGGERS[WORDS.get(kind) or MAPPED.get(kind) or "interval"]
    return RunningFacts(
        now,
        ends=trigger.ends or live.entry.get("kind") == "batch",
        has_batches=trigger.has_micro_batches,
        is_limited=_is_limited(seen, model),
        is_running=live.is_running and span.to_ms / 1000 > now - RECENT_SECONDS,
        lag=live.lag if live.lags else None,  # the checkpoint was read
        open_since=begun[1] if begun is not None and is_open else None,
    )


def _is_limited(seen: SeenProject, model: str) -> bool:
    """Returns whether a batch of a query reads at most a part of what a source has. A table of Delta Lake has a limit
    by default (`maxFilesPerTrigger` is 1,000).
    """
    shape = seen.shape.queries.get(model)
    if seen.loaded is None or shape is None:
        return True
    streams = [table for table in seen.loaded.compiled.tables_of(shape.unique_id) if table.mode == "stream"]
    return any(table.format == "delta" or has_batch_limit(table.options) for table in streams)
