"""What the checkpoint of a changed query and the files of its sources show of what it has read, and the files of its
static tables.
"""

from __future__ import annotations

import os
from itertools import chain
from pathlib import Path

from sqlstream.app.stored.local_sources import files_at
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.files.paths import alternatives_of, folder_of_pattern, join, plain_path
from sqlstream.project.formats.formats import format_of
from sqlstream.state.checkpoints import CheckpointState
from sqlstream.state.ledger import FileSummary, QueryIdentity
from sqlstream.state.output_files import StoredFile
from sqlstream.state.readers import folder_of, path_of, respelled
from sqlstream.state.reading import ReadSoFar, has_other_reads, moved_readers
from sqlstream.state.sources.positions import DatedFilesOf, read_position
from sqlstream.state.sources.source_files import FileChoice, file_choice


def read_so_far(
    files_of: DatedFilesOf, root: str, state: CheckpointState, identity: QueryIdentity
) -> dict[str, ReadSoFar]:
    """Returns what each reader of the ledger has read, by its name; nothing if `identity` reads the same as the ledger.
    `root` is the folder of the query. Raises: OSError, Spark's errors.
    """
    if state.ledger is None or not state.is_used:
        return {}
    old = respelled(state.ledger.identity, identity)
    if not has_other_reads(old, identity):
        return {}
    position = read_position(files_of, root, state.version)
    if position.problem is not None:
        return {}
    moved = {before.name: (before, now) for before, now in moved_readers(old, identity)}
    found = {}
    for source in position.sources:
        if source.use is not None:
            pair = moved.get(source.use.name)
            choices = [(path_of(use) or "", file_choice(use.options), folder_of(use)) for use in pair or ()]
            files = [_files_at(*each) for each in choices] or [None, None]
            found[source.use.name] = ReadSoFar(source.offset, source.read, *files)
    return found


def static_files(compiled: CompiledProject, model: CompiledModel) -> dict[str, FileSummary]:
    """Returns the files of each static table that the query of `model` reads from a local disk, by its full name."""
    found = {}
    for table in compiled.tables_of(model.unique_id):
        root = str(compiled.project.root)
        path = join(root, table.path or "")
        if table.mode == "stream" or table.path is None or not format_of(table.format).is_file:
            continue
        folder = folder_of_pattern(path, root, os.path.exists)
        files = _files_at(plain_path("/", path), file_choice(table.options), folder)
        if files is not None:
            newest = max((file.modified for file in files), default=0)
            found[table.full_name] = FileSummary(len(files), sum(file.size for file in files), newest)
    return found


def _files_at(path: str, choice: FileChoice | None, folder: str) -> tuple[StoredFile, ...] | None:
    """Returns the files at `path`, a pattern below `folder`; None if Python cannot list them as Spark does."""
    if not path.startswith("/") or choice is None or "\\" in path.removeprefix(folder):
        return None
    paths = list(alternatives_of(path, folder))
    outside = Path(folder).parent if folder == path else Path(folder)
    try:
        found = [files_at(each, choice, outside) for each in paths]
    except OSError:
        return None
    if any(files is None and Path(each).exists() for each, files in zip(paths, found, strict=True)):
        return None  # its log cannot be read
    return tuple(chain.from_iterable(each or () for each in found))
