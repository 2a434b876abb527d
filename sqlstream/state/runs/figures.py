"""The totals of a query in a run, added up batch by batch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime

from sqlstream.state.runs.progress import BatchProgress, total

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
    """The totals of a query since its first start in a run: rows, the newest event time (UTC, ISO 8601), the last
    batch, the rates of the latest batches in rows per second, and the reasons of its `quiet` time. Totals are None if
    Spark does not know a part of them. `dropped_records` counts those of a static table once, because each batch reads
    it again: `dropped_static` is the most that one batch dropped.
    """

    batches: int = 0
    rows_in: int | None = 0
    rows_out: int | None = 0
    late_rows: int = 0
    dropped_records: int = 0
    dropped_static: int = 0
    newest_event: str | None = None
    last: BatchProgress | None = None
    rates: tuple[float, ...] = ()
    quiet: SilentSpan = field(default_factory=SilentSpan)

    @property
    def lag_seconds(self) -> float | None:
        """How far the watermark is behind the newest event time; None without one of them."""
        watermark = moment(self.last.watermark if self.last else None)
        newest = moment(self.newest_event)
        return None if watermark is None or newest is None else max((newest - watermark).total_seconds(), 0.0)


def add_batch(figures: Figures, batch: BatchProgress) -> Figures:
    """Returns `figures` with one more batch."""
    static = max(figures.dropped_static, batch.dropped_static)
    quiet = figures.quiet
    if figures.batches == 0 and batch.state is not None:
        before = batch.state.rows + batch.state.removed_rows - batch.state.updated_rows
        quiet = replace(quiet, has_earlier_rows=before > 0)
    streaming = figures.dropped_records - figures.dropped_static + batch.dropped_records - batch.dropped_static
    return Figures(
        batches=figures.batches + 1,
        rows_in=total((figures.rows_in, batch.rows_in)),
        rows_out=total((figures.rows_out, batch.rows_out)),
        late_rows=figures.late_rows + (batch.state.late_rows if batch.state else 0),
        dropped_records=streaming + static,
        dropped_static=static,
        newest_event=max(filter(None, (figures.newest_event, batch.newest_event)), key=_order, default=None),
        last=batch,
        rates=(*figures.rates, batch.input_rows_per_second or 0.0)[-RATES_KEPT:],
        quiet=SilentSpan() if batch.rows_out != 0 else _add_quiet(quiet, batch),
    )


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
        late_rows=quiet.late_rows + state.late_rows,
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
