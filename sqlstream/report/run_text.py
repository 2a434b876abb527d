"""Formats a run as lines of text, in dbt's style, with a table of its queries."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.cells import cell_len, set_cell_size

from sqlstream.errors import Finding
from sqlstream.numbers import bytes_text, count_text, plural, rate_text, seconds_text
from sqlstream.report.compiled import found_text
from sqlstream.report.findings import finding_text
from sqlstream.report.rows import cell_text, shown_text
from sqlstream.report.table import PADDING, node_line, table_text
from sqlstream.report.unit_tests_text import failure_text, result_line
from sqlstream.state.runs.case_outcomes import CaseResult, Outcome
from sqlstream.state.runs.events import (
    AlertChanged,
    Notice,
    QueryNotRun,
    QueryRestarting,
    QueryResult,
    QuerySilent,
    QueryStarted,
    RunEvent,
    RunStarting,
    Status,
    TableShown,
    UnitTestEnded,
    UnitTestStarted,
    WarningEmitted,
)
from sqlstream.state.runs.progress import BatchProgress, moment

OUTCOMES = {
    Status.SUCCESS: ("OK", "SUCCESS"),
    Status.STOPPED: ("STOPPED", "STOPPED"),
    Status.INTERRUPTED: ("STOPPED", "INTERRUPTED"),
    Status.ERROR: ("ERROR", "ERROR"),
    Status.SKIPPED: ("SKIP", "SKIP"),
}


TIME_LAYOUT = "%H:%M:%S"
"""The time of a line in a terminal."""

DATE_LAYOUT = f"%Y-%m-%d {TIME_LAYOUT}"
"""The time of a line in a log file, which may cover months."""

BARS = "▁▂▃▄▅▆▇█"


class TextReporter:
    """Prints each event of a run with `write` (one call per line, no newline), with the local time in `layout`."""

    def __init__(
        self,
        write: Callable[[str], None],
        clock: Callable[[], datetime] = datetime.now,
        layout: str = DATE_LAYOUT,
    ) -> None:
        self._write = write
        self._clock = clock
        self._layout = layout
        self._failures: dict[str, Finding] = {}

    def __call__(self, event: RunEvent) -> None:
        """Prints `event`."""
        if isinstance(event, QueryStarted):
            when = f", trigger {event.trigger}" if event.kind == "stream" else ""
            what = f"START {event.kind} {event.model} -> {event.sink}{when}"
            self._line(event.index, event.total, what, "RUN")
        elif isinstance(event, BatchProgress | QuerySilent | Notice | AlertChanged):
            self._note(event)
        elif isinstance(event, QueryRestarting):
            self._restarting(event)
        elif isinstance(event, QueryResult):
            self._result(event)
        elif isinstance(event, UnitTestStarted | UnitTestEnded | QueryNotRun):
            self._of_build(event)
        elif isinstance(event, TableShown):
            self._write(memory_text(event))
        elif isinstance(event, WarningEmitted):
            self._write(finding_text(event.finding))
        elif isinstance(event, RunStarting):
            self._print(f"sqlstream {event.sqlstream_version} on Spark {event.spark_version}")
            self._print(found_text(event.models, event.sources, event.sinks, event.seeds, exposures=event.exposures))

    def _restarting(self, event: QueryRestarting) -> None:
        """Prints a failure in full, and the same one again only as a line."""
        is_same = self._failures.get(event.model) == event.finding
        self._failures[event.model] = event.finding
        self._print(restart_text(event) + (", with the same error" if is_same else ""))
        if not is_same:
            self._write(finding_text(event.finding))

    def _note(self, event: BatchProgress | QuerySilent | Notice | AlertChanged) -> None:
        if isinstance(event, BatchProgress):
            self._print(batch_text(event))
        elif isinstance(event, AlertChanged):
            self._print(alert_text(event))
        elif isinstance(event, Notice):
            self._print(event.text)
        elif event.is_new:
            self._print(*silence_texts([Silent(event.model, event.silence.text, event.has_ended)]))

    def _result(self, result: QueryResult) -> None:
        word, status = OUTCOMES[result.status]
        if result.started:
            status += f" {plural(result.batches, 'batch', 'batches')} in {seconds_text(result.seconds)}"
        if result.restarts:
            status += f", {plural(result.restarts, 'restart')}"
        if result.late_rows:
            status += f", {late_text(result.late_rows)}"
        if result.dropped_records:
            status += f", {dropped_text(result.dropped_records)}"
        if result.violations:
            status += f", {plural(result.violations, 'violation')}"
        self._line(result.index, result.total, f"{word} {result.kind} {result.model}", status)
        if result.finding is not None:
            self._write(finding_text(result.finding))

    def _of_build(self, event: UnitTestStarted | UnitTestEnded | QueryNotRun) -> None:
        if isinstance(event, QueryNotRun):
            self._line(event.index, event.total, f"NO-OP {event.kind} {event.model}", "NO-OP")
            self._print(f"{event.model} does not run: {event.reason}")
        elif isinstance(event, UnitTestStarted):
            self._line(event.index, event.total, f"START unit test {event.test.name}", "RUN")
        else:
            self._print(result_line(event.result, event.index, event.total))
            said = failure_text(event.result, None)
            if said:
                self._write(said)

    def _line(self, index: int, total: int, what: str, end: str) -> None:
        self._print(node_line(index, total, what, end))

    def _print(self, text: str) -> None:
        self._write(f"{self._clock():{self._layout}}  {text}")


def batch_text(batch: BatchProgress) -> str:
    """Returns the line of one batch."""
    parts = [
        f"{plural(batch.rows_in, 'row')} in",
        f"{plural(batch.rows_out, 'row')} out",
        seconds_text(batch.duration_ms / 1000),
    ]
    if batch.watermark:
        parts.append(f"watermark {batch.watermark}")
    if batch.late_rows:
        parts.append(late_text(batch.late_rows))
    if batch.dropped_records:
        parts.append(dropped_text(batch.dropped_records))
    parts += [
        f"{plural(count['failed'], 'violation')} of {name}"
        for name, count in batch.data_tests.items()
        if count["failed"]
    ]
    if batch.new_fields:
        parts.append(new_fields_text(batch.new_fields))
    return f"{batch.model} batch {batch.batch_id}: {', '.join(parts)}"


@dataclass(frozen=True)
class Silent:
    """Why the query of a model emits no rows, or emitted none until its end. `had_rows`: it emitted rows before."""

    model: str
    why: str
    has_ended: bool
    had_rows: bool = False


def silence_texts(silent: Iterable[Silent]) -> list[str]:
    """Returns a line for each reason, with the names of its queries."""
    names: dict[tuple[str, bool, bool], list[str]] = {}
    for each in silent:
        names.setdefault((each.why, each.has_ended, each.had_rows), []).append(each.model)
    return [_silence_text(models, *reason) for reason, models in names.items()]


def _silence_text(models: Sequence[str], why: str, has_ended: bool, had_rows: bool) -> str:
    verb = "emitted" if has_ended else "emits" if len(models) == 1 else "emit"
    return f"{', '.join(models)} {verb} no {'more ' if had_rows else ''}rows: {why}"


def alert_text(alert: AlertChanged) -> str:
    """Returns the line for a change of an alert."""
    word = {"raised": "ALERT", "repeated": "ALERT still open", "open": f"ALERT open since {_since(alert)}"}
    return f"{word.get(alert.state, 'RESOLVED')} {alert.alert}: {alert.message}"


def open_alerts_text(alerts: Sequence[AlertChanged]) -> str:
    """Returns the lines for the open alerts at the end of a run, empty without any."""
    lines = [f"  {alert.alert}: {alert.message} (since {_since(alert)})" for alert in alerts]
    return "\n".join(["", f"{plural(len(alerts), 'open alert')}:", *lines]) if lines else ""


def _since(alert: AlertChanged) -> str:
    """Returns when an alert was raised, to the second."""
    return f"{alert.since[:19].replace('T', ' ')} UTC"


def late_text(rows: int) -> str:
    """Returns the number of rows that Spark dropped, because they were behind the watermark."""
    return f"{plural(rows, 'late row')} dropped"


SHOWN_FIELDS = 5
"""The most new fields that a line names."""


def new_fields_text(found: Mapping[str, Mapping[str, int]]) -> str:
    """Returns the new fields of sources, those of most records first: `new fields in shop.orders: color (12)`."""
    texts = []
    for source, fields in found.items():
        ordered = sorted(fields.items(), key=lambda item: (-item[1], item[0]))
        shown = [f"{shown_text(name)} ({count_text(rows)})" for name, rows in ordered[:SHOWN_FIELDS]]
        more = [f"{len(fields) - SHOWN_FIELDS} more"] if len(fields) > SHOWN_FIELDS else []
        texts.append(f"new fields in {source}: {', '.join([*shown, *more])}")
    return "; ".join(texts)


def dropped_text(records: int) -> str:
    """Returns the number of corrupt records that were dropped."""
    return f"{plural(records, 'corrupt record')} dropped"


def restart_text(restarting: QueryRestarting) -> str:
    """Returns the line for a failed query that restarts."""
    count = f"attempt {restarting.attempt} of {restarting.attempts}"
    return f"{restarting.model} failed and restarts in {seconds_text(restarting.delay_seconds)}, {count}"


def memory_text(shown: TableShown) -> str:
    """Returns the table of a memory sink with a title line."""
    is_cut = shown.count > len(shown.rows)
    part = f", the first {len(shown.rows):,} shown; use --limit to show more" if is_cut else ""
    rows = [[cell_text(value) for value in row] for row in shown.rows]
    head = f"{shown.model} ({plural(shown.count, 'row')}{part})"
    return "\n".join(["", head, table_text(shown.columns, rows)])


def summary_text(
    results: Sequence[QueryResult], counts: Counts, here: Path, alerts: Sequence[AlertChanged] = ()
) -> str:
    """Returns the closing table, open alerts, and dbt's closing line. Paths below `here` are shown relative to it."""
    rows = [_summary_row(result, here) for result in results]
    header = ("query", "status", "batches", "rows in", "rows out", "duration", "output")
    table = table_text(header, rows, right=(2, 3, 4, 5)) if rows else None
    parts = [part for part in (table, open_alerts_text(alerts)) if part]
    lines = [*parts, *([""] if parts else []), done_line(results, counts)]
    return "\n" + "\n".join(lines)


def _summary_row(result: QueryResult, here: Path) -> tuple[str, ...]:
    if not result.started:
        return (result.model, str(result.status), "-", "-", "-", "-", "-")
    return (
        result.model,
        str(result.status),
        count_text(result.batches),
        count_text(result.rows_in),
        count_text(result.rows_out),
        seconds_text(result.seconds),
        shown_path(result.output, here),
    )


@dataclass(frozen=True)
class Counts:
    """What the closing line counts besides queries: warnings, and in a build unit tests and queries that never end."""

    warnings: int = 0
    tests: tuple[CaseResult, ...] = ()
    not_run: int = 0


def done_line(results: Sequence[QueryResult], counts: Counts) -> str:
    """Returns `Done. PASS=.. WARN=.. ERROR=.. SKIP=.. TOTAL=..`; a query that was stopped counts as passed. In front of
    TOTAL is NO-OP, as in dbt, if a build has left out queries.
    """
    queries = Counter(result.status for result in results)
    tests = Counter(test.outcome for test in counts.tests)
    passed = queries[Status.SUCCESS] + queries[Status.STOPPED] + queries[Status.INTERRUPTED] + tests[Outcome.PASSED]
    errors = queries[Status.ERROR] + tests[Outcome.FAILED] + tests[Outcome.BROKEN]
    skipped = queries[Status.SKIPPED] + tests[Outcome.SKIPPED]
    left_out = f" NO-OP={counts.not_run}" if counts.not_run else ""
    total = len(results) + len(counts.tests) + counts.not_run
    return f"Done. PASS={passed} WARN={counts.warnings} ERROR={errors} SKIP={skipped}{left_out} TOTAL={total}"


def shown_path(path: str | None, here: Path) -> str:
    """Returns `path`, relative to `here` if it is below, and `-` for None."""
    if path is None:
        return "-"
    try:
        return str(Path(path).relative_to(here))
    except ValueError:
        return path


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
