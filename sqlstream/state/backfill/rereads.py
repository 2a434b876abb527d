"""Checks that a stream does not read the files again that a backfill has written to its sink."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.errors import FindingsError
from sqlstream.state.backfill.ranges import read_again
from sqlstream.state.backfill.record import BackfillRecord
from sqlstream.state.backfill.refusals import written_by_backfill
from sqlstream.state.progress.positions import DatedFilesOf, read_position
from sqlstream.state.progress.source_files import file_choice


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
