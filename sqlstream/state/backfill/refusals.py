"""Why a query cannot be backfilled, or cannot run before an interrupted backfill is complete."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.errors import Finding
from sqlstream.location import Location
from sqlstream.project.wording import counted, quoted

CODE, UNFINISHED, AGAIN = "cannot-backfill", "unfinished-backfill", "backfilled-files"


def cannot_backfill(model: str, why: str, fix: str, location: Location) -> Finding:
    """Returns the finding that a query cannot be backfilled."""
    return Finding(CODE, f"{quoted(model)} cannot be backfilled", why, fix, location)


def beside(model: str) -> str:
    """Returns how a new version reads all history instead."""
    return (
        "read everything in a new version beside the current one: "
        f"`sqlstream run --select {model} --parallel {model} --full-refresh`, then `sqlstream promote {model}`; "
        "let a source of Kafka or Delta Lake start earlier for it"
    )


def unfinished(model: str, batch: int, location: Location) -> Finding:
    """Returns the finding that a backfill was interrupted."""
    return Finding(
        UNFINISHED,
        f"a backfill of {quoted(model)} was interrupted in batch {batch}",
        "the sink may have the rows of that batch already, so the stream cannot use its number for new rows",
        f"complete it: `sqlstream backfill {model}`; it writes each row once",
        location,
    )


def written_by_backfill(model: str, table: str, files: Sequence[str], location: Location) -> Finding:
    """Returns the finding that a stream would read files again that a backfill has written."""
    return Finding(
        AGAIN,
        f"{quoted(model)} would read {counted(len(files), 'file')} again that a backfill has written to its sink",
        f"the options of its source {quoted(table)}, such as `maxFileAge`, now include them, for example {files[0]}",
        f"undo the change of the options; or read everything in a new version: "
        f"`sqlstream run --full-refresh --select {model}`",
        location,
    )


def unreadable_record(model: str, path: str, problem: str, location: Location) -> Finding:
    """Returns the finding that the record of backfills cannot be read."""
    return Finding(
        "ledger-unreadable",
        f"the record of the backfills of {quoted(model)} cannot be read",
        f"{path}: {problem}; without it, history could be written twice",
        f"restore the file from a backup; or start over: `sqlstream run --full-refresh --select {model}`",
        location,
    )
