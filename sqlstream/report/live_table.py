"""Shows a run in a terminal: a table that is updated, below the lines of events."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from sqlstream.report.run_text import (
    TIME_LAYOUT,
    Counts,
    Silent,
    TextReporter,
    done_line,
    open_alerts_text,
    query_table,
    shown_path,
    silence_texts,
)
from sqlstream.state.runs.events import (
    AlertChanged,
    QueriesSelected,
    QueryResult,
    QuerySilent,
    QueryStarted,
    RunEvent,
    Status,
)
from sqlstream.state.runs.progress import BatchProgress
from sqlstream.state.runs.tracked_run import TrackedQuery, TrackedRun, follow

FRAMES_PER_SECOND = 2.0
"""Enough to follow batches, and changes of the terminal's size."""
CONSOLE = "console"
"""The format of sinks that print to the terminal, which would break the table."""


class LiveReporter:
    """Shows each event of a run: starts, notices, failures and ends as lines, batches in the table below them.

    A thread of rich draws the table from the first start of a query until `close`. If a query prints to the terminal,
    there is no table, and batches are lines.
    """

    def __init__(self, file: IO[str], width: int | None = None) -> None:
        self._console = Console(file=file, force_terminal=True, width=width, highlight=False, legacy_windows=False)
        self._plain = TextReporter(self._print, layout=TIME_LAYOUT)
        self._run = TrackedRun()
        self._live: Live | None = None
        self._has_table = True

    def __call__(self, event: RunEvent) -> None:
        """Shows `event`."""
        self._run = follow(self._run, event, datetime.now(UTC))
        if isinstance(event, QueriesSelected):
            self._has_table = all(CONSOLE not in query.format.split(", ") for query in event.queries)
        if isinstance(event, QueryStarted) and self._live is None and self._has_table:
            self._begin()
        if self._live is None or not isinstance(event, BatchProgress | QuerySilent):
            self._plain(event)

    def close(self) -> None:
        """Draws the table for the last time and leaves it in the terminal."""
        if self._live is not None:
            self._live.stop()

    def summary(
        self, results: Sequence[QueryResult], counts: Counts, here: Path, alerts: Sequence[AlertChanged] = ()
    ) -> str | None:
        """Returns the lines below the table: the output of each query, the open alerts, and dbt's closing line. None
        without a table.
        """
        if self._live is None:
            return None
        written = [
            f"{result.model} -> {shown_path(result.output, here)}"
            for result in results
            if result.output is not None and result.status is not Status.SKIPPED
        ]
        opened = open_alerts_text(alerts)
        parts = [*written, *([opened] if opened else []), *([""] if written or opened else [])]
        return "\n".join(["", *parts, done_line(results, counts)])

    def _begin(self) -> None:
        self._live = Live(
            console=self._console,
            refresh_per_second=FRAMES_PER_SECOND,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=self._frame,
        )
        self._live.start()
        self._console.show_cursor(True)  # rich hides it, and a killed run could not show it again

    def _frame(self) -> RenderableType:
        """Returns the table in the terminal's present width, and the reasons why some queries emit no rows.

        Each line that is printed draws it too, so a bug in the figures of one query must not reach another.
        """
        try:
            return self._table()
        except Exception as bug:
            return Text(f"the table cannot be shown: {type(bug).__name__}: {bug}")

    def _table(self) -> RenderableType:
        now, queries = datetime.now(UTC), self._run.queries.values()
        table = query_table([query.as_json(now) for query in queries], self._console.width)
        notes = silence_texts(silent for query in queries if (silent := _silence_of(query)))
        lines = Text(table, no_wrap=True, overflow="crop")
        return Group(Text(""), lines, *(Text(note) for note in notes))

    def _print(self, line: str) -> None:
        self._console.print(Text(line), soft_wrap=True)


def _silence_of(query: TrackedQuery) -> Silent | None:
    silence, had_rows = query.why_silent(), bool(query.figures.sums["rows_out"])
    return None if silence is None else Silent(query.query.model, silence.text, query.has_ended, had_rows)
