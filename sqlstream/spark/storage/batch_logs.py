"""Reads the logs of a checkpoint, and checks that the files in them exist."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from pyspark.sql import SparkSession

from sqlstream.spark.storage.storage import SessionStorages, Storage, Storages
from sqlstream.state.batch_logs import (
    COMMITS_LINES,
    OFFSETS_LINES,
    SINK_LOG,
    BatchLog,
    BatchLogs,
    after_compact,
    from_compact,
)
from sqlstream.state.checkpoints import read_log
from sqlstream.state.damage import Damage, find_damage
from sqlstream.state.layout import archive_folder
from sqlstream.state.repartition.batches import is_written_by

LAST_ENTRIES = 3
"""Entries to read of the offsets and commits: Spark needs the last two, and one more can be torn."""


def checkpoint_damage(session: SparkSession, checkpoint: str, output: str | None) -> list[Damage]:
    """Returns the damage that keeps the query of this checkpoint from resuming exactly. `output` is the folder of its
    file sink, None for other sinks. Raises: OSError, Spark's errors.
    """
    return stored_damage(SessionStorages(session), checkpoint, output)


def stored_damage(storages: Storages, checkpoint: str, output: str | None) -> list[Damage]:
    """Returns the same as `checkpoint_damage`, and works without Spark."""
    logs = _read_logs(storages, checkpoint, output)
    found = find_damage(logs, lambda uris: [uri for uri in uris if not storages.exists(uri)])
    return [_with_state_files(storages, checkpoint, damage) for damage in found]


def _with_state_files(storages: Storages, checkpoint: str, damage: Damage) -> Damage:
    """Returns the damage with the state that an uncommitted repartition has written, to be archived before its entry.

    The next batch has the same number. Spark would load a snapshot of the repartition instead of that batch's changes.
    """
    if damage.repartition is None or not damage.archive:
        return damage
    storage, checkpoint = storages.of(checkpoint)
    state = f"{checkpoint}/state"
    written = [file.name for file in storage.files(state) if is_written_by(file.name, damage.batch)]
    return replace(damage, archive=(*(f"{state}/{name}" for name in written), *damage.archive))


def _read_logs(storages: Storages, checkpoint: str, output: str | None) -> BatchLogs:
    storage, checkpoint = storages.of(checkpoint)
    offsets = read_offsets(storage, checkpoint)
    commits = read_commits(storage, checkpoint)
    choose = partial(_source_entries, with_last=offsets.last > commits.last)
    folder = f"{checkpoint}/sources"
    sources = {name: read_log(storage, f"{folder}/{name}", choose) for name in storage.names(folder)}
    identity = f"{checkpoint}/metadata"
    logs = BatchLogs(offsets, commits, sources, identity=(identity, storage.read_text(identity)))
    if output is None:
        return logs
    storage, output = storages.of(output)
    return replace(logs, sink=read_log(storage, f"{output}/{SINK_LOG}", after_compact))


def read_offsets(storage: Storage, checkpoint: str) -> BatchLog:
    """Returns the last entries of the log of offsets."""
    return read_log(storage, f"{checkpoint}/offsets", _last, OFFSETS_LINES)


def read_commits(storage: Storage, checkpoint: str) -> BatchLog:
    """Returns the last entries of the log of commits."""
    return read_log(storage, f"{checkpoint}/commits", _last, COMMITS_LINES)


def read_sink_log(storage: Storage, output: str) -> BatchLog:
    """Returns the log of the file sink that writes to `output`, with the entries that list all its files."""
    return read_log(storage, f"{output}/{SINK_LOG}", from_compact)


def _last(names: Mapping[int, str]) -> list[int]:
    return sorted(names)[-LAST_ENTRIES:]


def _source_entries(names: Mapping[int, str], *, with_last: bool) -> list[int]:
    """Returns the entries of a source's log to read. A compact entry is long, and only read for an unfinished batch."""
    numbers = after_compact(names)
    return [max(names)] if names and not numbers and with_last else numbers


def archive_entry(storages: Storages, path: str, checkpoint: str, archive: str) -> tuple[str, str]:
    """Moves a log entry with its checksum to an archive, and returns its old and its new path.

    Entries of the checkpoint go to the folder `archive`, entries of a file sink's log to the archive of its output.
    """
    storage, checkpoint = storages.of(checkpoint)
    moved = _archived(path, checkpoint, archive)
    storage, path = storages.of(path)
    move_with_checksum(storage, path, moved)
    return path, moved


def move_with_checksum(storage: Storage, path: str, moved: str) -> None:
    """Moves a file, and the checksum file that Hadoop writes beside it on a local disk."""
    storage.move(path, moved)
    if storage.exists(_checksum(path)):
        storage.move(_checksum(path), _checksum(moved))


def _checksum(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return f"{folder}/.{name}.crc"


def _archived(path: str, checkpoint: str, archive: str) -> str:
    if path.startswith(f"{checkpoint}/"):
        return archive + path.removeprefix(checkpoint)
    output, _, name = path.rpartition(f"/{SINK_LOG}/")
    return f"{archive_folder(output)}/{archive.rpartition('/')[2]}/{SINK_LOG}/{name}"
