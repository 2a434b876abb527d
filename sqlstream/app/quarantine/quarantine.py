"""Quarantined rows: which to show or to release, what was found, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlstream.app.request import SHOWN_ROWS, ProjectRequest
from sqlstream.numbers import count_text, plural
from sqlstream.report.rows import json_text, row_objects, rows_text
from sqlstream.report.table import table_text
from sqlstream.state.shown_rows import ShownRows


@dataclass(frozen=True)
class QuarantineRequest:
    """The quarantine of a model, or its `late` rows; all of them, or those that meet the condition `where` in SQL. At
    most `limit` rows are shown.
    """

    project: ProjectRequest
    model: str
    where: str | None = None
    limit: int = SHOWN_ROWS
    late: bool = False


@dataclass(frozen=True)
class ReleaseRequest:
    """The rows of a model's quarantine to release: those that meet `where`, or `every` one; without either, only an
    interrupted release is completed. `changes` has the SQL of new values by the names of columns. `replaces`: a
    released row may replace a later one with the same key. With `dry_run`, nothing is written.
    """

    project: ProjectRequest
    model: str
    where: str | None = None
    every: bool = False
    changes: Mapping[str, str] = field(default_factory=dict)
    replaces: bool = False
    dry_run: bool = False


@dataclass(frozen=True)
class Quarantine:
    """The rows in the quarantine of a version of a query, or its `late` rows. `tests` has how many of them violate each
    test. `released` is the number of rows that were released before. `shown` are the first rows, with `SOURCE` as their
    last column.
    """

    model: str
    version: int
    rows: int
    released: int
    tests: Mapping[str, int]
    shown: ShownRows
    late: bool = False


@dataclass(frozen=True)
class Released:
    """The rows that a release wrote to the sinks of a query, in `batch` (None: in none). `completed` is the number of
    rows of a release that was interrupted, in `completed_batch`. `left` has how many of the chosen rows still violate
    each test; `left_rows` is their number. `notes` are sentences without a period.
    """

    model: str
    version: int
    rows: int = 0
    batch: int | None = None
    completed: int = 0
    completed_batch: int | None = None
    left_rows: int = 0
    left: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False
    notes: tuple[str, ...] = ()


def quarantine_text(found: Quarantine, width: int | None) -> str:
    """Returns a line with the number of rows, a table of the tests, and one of the rows."""
    released = f", and {count_text(found.released)} released" if found.released else ""
    rows = plural(found.rows, "late row") if found.late else f"{plural(found.rows, 'row')} in quarantine{released}"
    parts = [f"`{found.model}`, version {found.version}: {rows}"]
    if found.rows and not found.late:
        tests = [(name, count_text(rows)) for name, rows in found.tests.items()]
        parts.append(table_text(("violated test", "rows"), tests, right=[1]))
    if found.shown.rows:
        parts.append(rows_text(_with_short_sources(found.shown), width))
    return "\n\n".join(parts)


def _with_short_sources(shown: ShownRows) -> ShownRows:
    """Returns the rows with text for the places where they come from, without that column if all are unknown."""
    sources = [_source_text(row[-1]) for row in shown.rows]
    if not any(sources):
        return replace(shown, columns=shown.columns[:-1], rows=tuple(row[:-1] for row in shown.rows))
    rows = tuple((*row[:-1], source) for row, source in zip(shown.rows, sources, strict=True))
    return replace(shown, rows=rows)


def _source_text(source: object) -> str | None:
    """Returns the file of a row, or its topic, partition and offset."""
    if not isinstance(source, dict):
        return None
    if source["topic"] is None:
        return None if source["file"] is None else str(source["file"])
    return f"{source['topic']}, partition {source['partition']}, offset {source['offset']}"


def quarantine_json(found: Quarantine) -> str:
    """Returns one JSON object."""
    return json_text(
        {
            "succeeded": True,
            "model": found.model,
            "version": found.version,
            "late": found.late,
            "quarantined_rows": found.rows,
            "released_rows": found.released,
            "tests": dict(found.tests),
            **row_objects(found.shown),
        },
        indent=2,
    )


def released_text(found: Released) -> str:
    """Returns a line about each batch, one about the rows that stay in quarantine, and the result."""
    name = f"`{found.model}`, version {found.version}"
    lines = []
    if found.completed_batch is not None:
        lines.append(f"batch {found.completed_batch}, which was interrupted: {plural(found.completed, 'row')}")
    if found.batch is not None:
        lines.append(f"batch {found.batch}: {plural(found.rows, 'row')}")
    lines += [f"Note: {note}." for note in found.notes]
    if found.left:
        violated = ", ".join(f"{test} ({count_text(rows)})" for test, rows in found.left.items())
        lines.append(f"Left in quarantine: {plural(found.left_rows, 'row')}; violated tests: {violated}")
    rows = plural(found.rows + found.completed, "row")
    if found.dry_run and found.rows + found.completed:
        lines.append(f"Would release {rows} of {name}. Nothing was written.")
    elif found.rows + found.completed == 0:
        lines.append(f"{'Would release' if found.dry_run else 'Released'} no row of {name}.")
    else:
        lines.append(f"Released {rows} of {name}. The next run continues the stream.")
    return "\n".join(lines)


def released_json(found: Released) -> str:
    """Returns one JSON object."""
    return json_text(
        {
            "succeeded": True,
            "model": found.model,
            "version": found.version,
            "dry_run": found.dry_run,
            "batch": found.batch,
            "rows": found.rows,
            "completed_batch": found.completed_batch,
            "completed_rows": found.completed,
            "left_rows": found.left_rows,
            "left": dict(found.left),
            "notes": list(found.notes),
        },
        indent=2,
    )
