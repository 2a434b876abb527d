"""`sqlstream state repair`: puts aside what was torn in a checkpoint, so that its query can go on exactly, and files in
its output that no batch has committed.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.app.loading.load import load
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.stored_query import StoredQuery, open_query
from sqlstream.errors import Finding, FindingsError
from sqlstream.spark.storage.batch_logs import archive_entry, move_with_checksum, stored_damage
from sqlstream.spark.storage.storage import held
from sqlstream.state.damage import damage_finding
from sqlstream.state.layout import archive_folder, archive_moment, archive_path
from sqlstream.state.output_files import Leftovers, OutputFiles, Repaired, StoredFile


def repair_checkpoint(request: ProjectRequest, name: str, version: int | None = None) -> Repaired:
    """Archives what in the checkpoint of the terminal model `name` is torn and was not committed, and then the files in
    its output that no batch has committed; in the newest version if none is asked for.

    Raises: FindingsError, also where the damage cannot be repaired or the query runs, and nothing is changed then;
    UsageError for a name that is no terminal model's, and for a version that does not exist.
    """
    with open_query(load(request), request, name, version) as query:
        if not query.state.version:
            return Repaired(name)
        with held(query.storage, query.root, name, query.model.file.location):
            moment = archive_moment()
            return Repaired(name, _put_torn_aside(query, moment), put_leftovers_aside(query, moment))


def _put_torn_aside(query: StoredQuery, moment: str) -> tuple[tuple[str, str], ...]:
    model = query.model
    output = query.output if model.streaming else None
    found = stored_damage(query.storages, query.checkpoint, output)
    hopeless = [damage for damage in found if not damage.archive]
    if hopeless:
        raise FindingsError([damage_finding(model.name, damage, model.file.location) for damage in hopeless])
    archive = archive_path(query.root, query.state.version, moment)
    paths = tuple(dict.fromkeys(path for damage in found for path in damage.archive))
    return tuple(archive_entry(query.storages, path, query.checkpoint, archive) for path in paths)


def put_leftovers_aside(query: StoredQuery, moment: str) -> Leftovers | None:
    """Archives the files in the output that no batch has committed, and returns them; None where there are none.

    `moment` is a part of the archive's name. Raises: FindingsError where nobody can tell; OSError, Spark's errors.
    """
    output = query.output
    found = _leftovers(query, output) if output is not None else []
    if output is None or not found:
        return None
    storage, folder = query.storages.of(output)
    archive = f"{archive_folder(folder)}/{moment}"
    for file in found:
        move_with_checksum(storage, f"{folder}/{file.name}", f"{archive}/{file.name}")
    taken = _committed_since(found, query.files(output))
    for file in taken:
        move_with_checksum(storage, f"{archive}/{file.name}", f"{folder}/{file.name}")
    return Leftovers(folder, archive, tuple(file for file in found if file not in taken))


def _leftovers(query: StoredQuery, output: str) -> list[StoredFile]:
    """The files that no batch has committed. Raises: FindingsError where a run may be writing them.

    Where nothing keeps a run away, a batch must not be open between the first look and the second one: files that both
    of them find are then no batch's that will be committed.
    """
    found = list(query.files(output).leftover)
    if query.has_locks or not found:
        return found
    if query.has_open_batch():
        raise FindingsError([_may_run(query)])
    again = set(query.files(output).leftover)
    return [file for file in found if file in again]


def _committed_since(moved: Sequence[StoredFile], now: OutputFiles) -> list[StoredFile]:
    """Files that a batch has committed while they were moved: a JVM may live for a moment after its Python was killed,
    and behind a URI nothing keeps a run from starting.
    """
    missing = set(now.missing)
    return [file for file in moved if file.name.rpartition("/")[2] in missing]


def _may_run(query: StoredQuery) -> Finding:
    name = query.model.name
    return Finding(
        "query-in-use",
        f"a batch of `{name}` started but is not committed, and its run may still be active",
        "this storage has no locks, so leftover files look the same as files that an active run is writing",
        f"finish the batch with `sqlstream run --available-now -s {name}`, then repair",
        query.model.file.location,
    )
