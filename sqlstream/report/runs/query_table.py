"""The queries of a run as a table, with the columns that fit into the terminal."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.cells import cell_len, set_cell_size

from sqlstream.report.numbers import bytes_text, count_text, rate_text, seconds_text
from sqlstream.report.table import PADDING, table_text
from sqlstream.state.runs.figures import moment

BARS = "▁▂▃▄▅▆▇█"


@dataclass(frozen=True)
class TableColumn:
    """A column. If not all columns fit, those with the highest `rank` are left out."""

    name: str
    rank: int
    right: bool = True


COLUMNS = (
    TableColumn("query", 0, right=False),
    TableColumn("status", 1, right=False),
    TableColumn("batch", 4),
    TableColumn("rows in", 2),
    TableColumn("rows out", 3),
    TableColumn("in/s", 7),
    TableColumn("done/s", 11),
    TableColumn("took", 8),
    TableColumn("watermark", 6, right=False),
    TableColumn("lag", 5),
    TableColumn("state rows", 9),
    TableColumn("memory", 12),
    TableColumn("late", 10),
    TableColumn("trend", 13, right=False),
)


def query_table(entries: Sequence[Mapping[str, Any]], width: int | None) -> str:
    """Returns a table with a row for each entry of run_results.json.

    If it is wider than `width` (None: no limit), columns are left out, the least important first. If that is not
    enough, the names of queries are cut.
    """
    rows = [_cells(entry) for entry in entries]
    kept = list(COLUMNS)
    while width is not None and len(kept) > 2 and _width(kept, rows) > width:
        kept.remove(max(kept, key=lambda column: column.rank))
    if width is not None and _width(kept, rows) > width:
        room = max(width - _width(kept[1:], rows) - PADDING, 1)
        rows = [{**row, "query": _cut(row["query"], room)} for row in rows]
    header = [column.name for column in kept]
    right = [index for index, column in enumerate(kept) if column.right]
    return table_text(header, [[row[name] for name in header] for row in rows], right=right)


def _width(columns: Sequence[TableColumn], rows: Sequence[Mapping[str, str]]) -> int:
    widths = [max(map(cell_len, (column.name, *(row[column.name] for row in rows)))) for column in columns]
    return sum(widths) + PADDING * (len(columns) - 1)


def _cut(name: str, room: int) -> str:
    return name if cell_len(name) <= room else set_cell_size(name, room - 1) + "…"


def _cells(entry: Mapping[str, Any]) -> dict[str, str]:
    progress = entry.get("progress") or {}
    state = progress.get("state") or {}
    late = entry.get("late_rows") or 0
    lag, took = entry.get("watermark_lag_seconds"), progress.get("duration_ms")
    return {
        "query": str(entry.get("model")),
        "status": str(entry.get("status")),
        "batch": count_text(progress.get("batch_id")),
        "rows in": count_text(entry.get("rows_in")),
        "rows out": count_text(entry.get("rows_out")),
        "in/s": rate_text(progress.get("input_rows_per_second")),
        "done/s": rate_text(progress.get("processed_rows_per_second")),
        "took": "-" if took is None else seconds_text(took / 1000),
        "watermark": time_text(progress.get("watermark")),
        "lag": "-" if lag is None else seconds_text(lag),
        "state rows": count_text(state.get("rows")),
        "memory": bytes_text(state.get("memory_bytes")),
        "late": count_text(late) if state else "-",
        "trend": sparkline(entry.get("latest_rates") or ()),
    }


def time_text(text: str | None) -> str:
    """Returns a time from Spark as `2024-01-01 12:00:00` in UTC, and `-` for None."""
    time = moment(text)
    if time is None:  # or the year has more digits
        return re.sub(r"T(\d\d:\d\d:\d\d).*", r" \1", text or "-")
    return time.replace(tzinfo=None).isoformat(" ", "seconds")


def sparkline(rates: Sequence[float]) -> str:
    """Returns a bar for each rate, the newest one on the right, relative to the highest rate."""
    top = max(rates, default=0.0)
    return "".join(BARS[round(rate / top * (len(BARS) - 1)) if top > 0 else 0] for rate in rates)
