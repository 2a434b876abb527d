"""`sqlstream state repair`: archives damaged entries of a checkpoint, so that its query can resume without loss, and
files in its output that no batch has committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.app.stored.stored_query import OutputFolder, StoredQuery, open_query
from sqlstream.errors import FindingsError
from sqlstream.spark.secrets import Secrets
from sqlstream.spark.storage.checkpoints import archive_entry, move_with_checksum, stored_damage
from sqlstream.spark.storage.query_locks import query_lock
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import archive_folder, archive_moment, archive_path
from sqlstream.state.output_files import Leftovers, OutputFiles, Repaired, StoredFile


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
