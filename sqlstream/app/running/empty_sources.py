"""Sources of a run that have no files yet, each named once for all queries that read it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from sqlstream.app.running.small_runs import files_of, has_local_files, is_local
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import plain_path
from sqlstream.project.values import SourceTable

FILES_LOOKED_AT = 1_000
"""Of which one that Spark reads is enough; hidden ones are few."""


def empty_source_lines(compiled: CompiledProject, models: Sequence[CompiledModel]) -> Iterator[str]:
    """Gives a sentence for each table that `models` read from a local folder or pattern without a file."""
    project = compiled.project
    if not has_local_files(project.target):
        return
    for node, table in compiled.sources.items():
        readers = [model.name for model in models if node in compiled.graph.ancestors(model.unique_id)]
        if readers and table.corrupt_of is None and is_local(table) and _is_empty(str(project.root), table):
            waiting = f"{', '.join(readers)} {'has' if len(readers) == 1 else 'have'} no data to read from it"
            yield f"{table.full_name} has no files in {table.path} yet; {waiting}"


def _is_empty(root: str, table: SourceTable) -> bool:
    """Whether there is no file that Spark would read: it passes over names that begin with `_` or `.`."""
    try:
        files = islice(files_of(plain_path(root, table.path or "")), FILES_LOOKED_AT)
        return not any(file.name[0] not in "_." for file in files)
    except OSError:
        return False
