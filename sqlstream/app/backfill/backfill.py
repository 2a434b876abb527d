"""A backfill: what to write, what it wrote, and its text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from sqlstream.app.last_command import project_arguments
from sqlstream.app.request import ProjectRequest
from sqlstream.numbers import plural
from sqlstream.state.backfills import SourceHistory, TimeRange, count_records
from sqlstream.state.batch_logs import FILES


@dataclass(frozen=True)
class BackfillRequest:
    """The history of a model to write, from `since` (inclusive) to `until` (exclusive), None for no limit. With
    `dry_run`, nothing is written. With `only_complete`, only an interrupted backfill is completed. With `replaces`, the
    rows of the range are computed again instead, by their time in the column `by` (None: the only one).
    """

    project: ProjectRequest
    model: str
    since: datetime | None = None
    until: datetime | None = None
    dry_run: bool = False
    only_complete: bool = False
    replaces: bool = False
    by: str | None = None

    @property
    def times(self) -> TimeRange:
        """The range in ms since 1970."""
        return TimeRange(_milliseconds(self.since), _milliseconds(self.until))


def backfill_arguments(request: BackfillRequest) -> dict[str, Any]:
    """Returns the arguments of `backfill` as run_results.json records them."""
    since, until = (None if each is None else each.isoformat() for each in (request.since, request.until))
    return {
        "which": "backfill",
        **project_arguments(request.project),
        "model": request.model,
        "from": since,
        "to": until,
        "full_range": not request.only_complete and since is None and until is None,
        "replace": request.replaces,
        "by": request.by,
    }


def read_backfill(arguments: Mapping[str, Any], project: ProjectRequest) -> BackfillRequest:
    """Returns the request of a recorded `backfill`. Raises: KeyError, TypeError, ValueError for other arguments."""
    since, until = (
        None if arguments[name] is None else datetime.fromisoformat(arguments[name]) for name in ("from", "to")
    )
    only_complete = since is None and until is None and not arguments["full_range"]
    return BackfillRequest(
        project,
        str(arguments["model"]),
        since,
        until,
        only_complete=only_complete,
        replaces=bool(arguments.get("replace")),
        by=arguments.get("by"),
    )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else round(moment.timestamp() * 1000)


@dataclass(frozen=True)
class BackfilledBatch:
    """One batch of history. `rows_in` and `rows_out` are None if Spark does not know them, and before it has run.
    `is_completed`: an earlier command had begun it.
    """

    batch: int
    sources: Mapping[str, SourceHistory]
    rows_in: int | None = None
    rows_out: int | None = None
    is_completed: bool = False


@dataclass(frozen=True)
class RecomputedRange:
    """The rows of a range in a sink, by their time in `column`: how many there were, and how many have replaced them.
    `files_before` and `files_after` count the files of a file sink, None for other sinks and for what a dry run does
    not write.
    """

    sink: str
    format: str
    column: str
    rows_before: int
    rows_after: int
    files_before: int | None = None
    files_after: int | None = None


@dataclass(frozen=True)
class Backfilled:
    """The batches of a backfill of a version of a query, or the rows that were `recomputed` instead. With `dry_run`,
    nothing was written. `notes` are sentences without a period.
    """

    model: str
    version: int
    since: str | None
    until: str | None
    batches: tuple[BackfilledBatch, ...]
    dry_run: bool = False
    notes: tuple[str, ...] = ()
    recomputed: RecomputedRange | None = None


SHOWN_FILES = 3
"""The number of files to name."""


def backfilled_text(found: Backfilled) -> str:
    """Returns a line for each source of each batch, and one with the result."""
    lines = [line for batch in found.batches for line in _batch_lines(batch)]
    if found.recomputed is not None:
        lines += _recomputed_lines(found.recomputed)
    return "\n".join([*lines, *(f"Note: {note}." for note in found.notes if lines), _result(found)])


def _recomputed_lines(found: RecomputedRange) -> Iterator[str]:
    yield f"sink `{found.sink}` ({found.format}), rows by `{found.column}`"
    before, after = (
        plural(rows, "row") + ("" if files is None else f" in {plural(files, 'file')}")
        for rows, files in ((found.rows_before, found.files_before), (found.rows_after, found.files_after))
    )
    yield f"  {before} -> {after}"


def _batch_lines(batch: BackfilledBatch) -> Iterator[str]:
    again = ", which was interrupted" if batch.is_completed else ""
    rows = "" if batch.rows_out is None else f": {plural(batch.rows_in or 0, 'row')} in, {batch.rows_out:,} out"
    yield f"batch {batch.batch}{again}{rows}"
    for history in batch.sources.values():
        yield f"  {history.table}: {_history_text(history)}"


def _history_text(history: SourceHistory) -> str:
    if history.form != FILES:
        spans = [
            f"{topic}-{partition} {history.start[topic][partition]:,} to {end - 1:,}"
            for topic, partitions in history.end.items()
            for partition, end in partitions.items()
            if end > history.start[topic][partition]
        ]
        return f"{plural(count_records(history), 'offset')} ({', '.join(spans)})"
    first, last = (_moment(file.modified) for file in (history.files[0], history.files[-1]))
    names = [file.uri.rpartition("/")[2] for file in history.files[:SHOWN_FILES]]
    more = len(history.files) - len(names)
    named = ", ".join(names) + (f" and {more:,} more" if more else "")
    return f"{plural(len(history.files), 'file')} of {first} to {last} ({named})"


def _moment(milliseconds: int) -> str:
    return f"{datetime.fromtimestamp(milliseconds / 1000, UTC):%Y-%m-%d %H:%M:%S}"


def _result(found: Backfilled) -> str:
    name, between = f"`{found.model}`, version {found.version}", _range_text(found)
    if found.recomputed is not None:
        if found.dry_run:
            return f"Would recompute {name}{between}. Nothing was written."
        return f"Recomputed {name}{between}. The next run continues the stream."
    if not found.batches:
        return f"Nothing to backfill of {name}{between}: the stream has read or will read everything there."
    count = plural(len(found.batches), "batch", "batches")
    if found.dry_run:
        return f"Would backfill {name}{between}, in {count}. Nothing was written."
    return f"Backfilled {name}{between}, in {count}. The next run continues the stream."


def _range_text(found: Backfilled) -> str:
    limits = [f"{word} {time}" for word, time in (("from", found.since), ("to", found.until)) if time]
    return f", {' '.join(limits)}" if limits else ""


def backfilled_json(found: Backfilled) -> str:
    """Returns one JSON object."""
    batches = [
        {
            "batch": batch.batch,
            "rows_in": batch.rows_in,
            "rows_out": batch.rows_out,
            "completed_interrupted": batch.is_completed,
            "sources": [_source(history) for history in batch.sources.values()],
        }
        for batch in found.batches
    ]
    head = {"succeeded": True, "model": found.model, "version": found.version, "from": found.since, "to": found.until}
    replaced = None if found.recomputed is None else asdict(found.recomputed)
    tail = {"batches": batches, "recomputed": replaced, "notes": list(found.notes)}
    return json.dumps({**head, "dry_run": found.dry_run, **tail}, indent=2)


def _source(history: SourceHistory) -> dict[str, object]:
    if history.form == FILES:
        return {"name": history.table, "files": [file.uri for file in history.files]}
    return {"name": history.table, "start_offsets": history.start, "end_offsets": history.end}
