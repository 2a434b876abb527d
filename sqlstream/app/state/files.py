"""`sqlstream state files`: lists the committed files in a model's output. `sqlstream state repair`: archives damaged
entries of a checkpoint, so that its query can resume without loss, and files that no batch has committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.app.loading.load import load, load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.stored.stored_query import OutputFolder, StoredQuery, open_query
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import FindingsError, UsageError
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import archive_entry, move_with_checksum, stored_damage
from sqlstream.spark.storage.query_locks import query_lock
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import archive_folder, archive_moment, archive_path
from sqlstream.state.output_files import Leftovers, ModelFiles, OutputFiles, Repaired, StoredFile


def state_files(request: ProjectRequest, name: str, version: int | None = None, sink: str | None = None) -> ModelFiles:
    """Returns the files in the output of the terminal model `name`, by default in its current version. `sink` is needed
    if its query writes files to several sinks. Writes nothing.

    Raises: FindingsError, also if it is unknown which files are committed; UsageError if `name` is not a terminal
    model or writes no files, there is no such version, or `sink` is missing or wrong.
    """
    with open_query(load_for_reading(request), request, name, version) as query:
        output = _chosen(query, sink)
        found = query.files(output) if query.state.version else OutputFiles()
        return ModelFiles(name, query.state.version, query.storages.of(output.path)[1], found)


def _chosen(query: StoredQuery, sink: str | None) -> OutputFolder:
    outputs, name = query.outputs, query.model.name
    chosen = [output for output in outputs if sink in (None, output.sink)]
    if len(chosen) == 1:
        return chosen[0]
    if not outputs:
        raise UsageError(f"`{name}` has no files to list: {_why_none(query.model)}")
    names = ", ".join(output.sink for output in outputs)
    if sink is None:
        raise UsageError(f"`{name}` writes files to several sinks: {names}; choose one with --sink")
    raise UsageError(f"`{name}` writes no files to a sink `{sink}`; its sinks with files: {names}")


def _why_none(model: CompiledModel) -> str:
    table = next((output.table for output in model.outputs if output.table is not None), None)
    if table is not None:
        return f"table `{table}` does not exist yet, or its format tracks its own files"
    return f"the format of its sink is {', '.join(output.format for output in model.outputs)}"


def repair_checkpoint(request: ProjectRequest, name: str, version: int | None = None) -> Repaired:
    """Archives damaged uncommitted entries in the checkpoint of the terminal model `name`, and then the files in its
    output that no batch has committed. By default in the current version.

    Raises: FindingsError, also if the damage cannot be repaired or the query runs, without any change; UsageError if
    `name` is not a terminal model, or the version does not exist.
    """
    with open_query(load(request), request, name, version) as query:
        if not query.state.version:
            return Repaired(name)
        secrets = Secrets(request.env)
        with query_lock(query.storage, query.lock_root, name, query.model.file.location, secrets) as lock:
            moment = archive_moment()
            moved = _archive_damage(query, moment)
            left = []
            for output in query.outputs:
                lock.confirm()
                left.append(archive_leftovers(query, output, moment))
            return Repaired(name, moved, tuple(found for found in left if found is not None))


def _archive_damage(query: StoredQuery, moment: str) -> tuple[tuple[str, str], ...]:
    model = query.model
    logged: list[str | None] = [output.path for output in query.outputs if not output.is_replaced]
    outputs = logged if logged and model.streaming else [None]
    found = [damage for output in outputs for damage in stored_damage(query.storages, query.checkpoint, output)]
    permanent = [damage for damage in found if not damage.archive]
    if permanent:
        findings = [damage_finding(model.name, damage, model.file.location) for damage in permanent]
        raise FindingsError(list(dict.fromkeys(findings)))
    archive = archive_path(query.root, query.state.version, moment)
    paths = tuple(dict.fromkeys(path for damage in found for path in damage.archive))
    return tuple(archive_entry(query.storages, path, query.checkpoint, archive) for path in paths)


def archive_leftovers(query: StoredQuery, output: OutputFolder, moment: str) -> Leftovers | None:
    """Archives the files in `output` that no batch has committed, and returns them; None if there are none.

    `moment` is part of the archive's name. Raises: FindingsError if it is unknown which files are committed; OSError,
    Spark's errors.
    """
    found = query.files(output).leftover
    if not found:
        return None
    storage, folder = query.storages.of(output.path)
    archive = f"{archive_folder(folder)}/{moment}"
    for file in found:
        move_with_checksum(storage, f"{folder}/{file.name}", f"{archive}/{file.name}")
    restored = _committed_since(found, query.files(output))
    for file in restored:
        move_with_checksum(storage, f"{archive}/{file.name}", f"{folder}/{file.name}")
    return Leftovers(folder, archive, tuple(file for file in found if file not in restored))


def _committed_since(moved: Sequence[StoredFile], now: OutputFiles) -> list[StoredFile]:
    """Returns the files that a batch has committed while they were moved: a JVM may outlive its killed Python process
    for a moment.
    """
    missing = set(now.missing)
    return [file for file in moved if file.name.rpartition("/")[2] in missing]
