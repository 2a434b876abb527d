"""Why a query cannot be backfilled, cannot run before an interrupted backfill is complete, or would read its files
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.numbers import plural
from sqlstream.project.wording import quoted
from sqlstream.state.backfill.ranges import read_again
from sqlstream.state.backfill.record import BackfillRecord
from sqlstream.state.progress.positions import DatedFilesOf, read_position
from sqlstream.state.progress.source_files import file_choice

CODE, UNFINISHED, AGAIN = "cannot-backfill", "unfinished-backfill", "backfilled-files"


def cannot_backfill(model: str, why: str, fix: str, location: Location) -> Finding:
    """Returns the finding that a query cannot be backfilled."""
    return Finding(CODE, f"{quoted(model)} cannot be backfilled", why, fix, location)


def beside(model: str) -> str:
    """Returns how a new version reads all history instead."""
    return (
        "read everything in a new version in parallel with the current one: "
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
        f"{quoted(model)} would read {plural(len(files), 'file')} again that a backfill has written to its sink",
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


def check_backfilled(
    compiled: CompiledProject,
    model: CompiledModel,
    version_at: tuple[str, int],
    record: BackfillRecord,
    files: DatedFilesOf,
) -> None:
    """Raises: FindingsError if a source now includes files of `record`, because its options have changed. `version_at`
    are the root of the query and the version that resumes.
    """
    if not record.entries:
        return
    tables = {table.full_name: table for table in compiled.tables_of(model.unique_id)}
    findings = []
    for source in read_position(files, *version_at).sources:
        table = tables.get(source.use.table) if source.use is not None else None
        if table is None or source.read is None:
            continue
        choice = file_choice(table.options)
        again = [] if choice is None else read_again(record.histories(source.key), source.read, choice)
        if again:
            findings.append(written_by_backfill(model.name, table.full_name, again, model.file.location))
    if findings:
        raise FindingsError(findings)
