"""The stored checkpoints of queries: their logs read and checked, their state repartitioned, versions archived and
removed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from functools import partial

from pyspark.sql import SparkSession

from sqlstream.spark.jvm.file_sink import add_empty_batch, sink_log
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.jvm.internals import call_internal
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
from sqlstream.state.checkpoints import CheckpointState, read_log
from sqlstream.state.damage import Damage, find_damage
from sqlstream.state.layout import (
    archive_folder,
    archive_moment,
    archive_path,
    checkpoint_path,
    ledger_path,
    version_number,
    version_root,
)
from sqlstream.state.ledger import Ledger, LedgerUnreadableError, read_ledger
from sqlstream.state.output_files import sort_files
from sqlstream.state.plan import Action
from sqlstream.state.repartitions import is_written_by

StorageOf = Callable[[str], tuple[Storage, str]]
"""Returns the storage of a path, and the path in the form that this storage accepts."""

LAST_ENTRIES = 3
"""Entries to read of the offsets and commits: Spark needs the last two, and one more can be torn."""


def checkpoint_damage(session: SparkSession, checkpoint: str, output: str | None) -> list[Damage]:
    """Returns the damage that keeps the query of this checkpoint from resuming exactly. `output` is the folder of its
    file sink, None for other sinks. Raises: OSError, Spark's errors.
    """
    return stored_damage(SessionStorages(session), checkpoint, output)


def stored_damage(storages: Storages, checkpoint: str, output: str | None) -> list[Damage]:
    """Returns the damage that keeps the query of this checkpoint from resuming exactly, and needs no Spark for local
    files. `output` is the folder of its file sink, None for other sinks. Raises: OSError, Spark's errors.
    """
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
    # <output>/_spark_metadata/<batch>
    output, _, name = path.rpartition(f"/{SINK_LOG}/")
    return f"{archive_folder(output)}/{archive.rpartition('/')[2]}/{SINK_LOG}/{name}"


def archive_start(storage_of: StorageOf, root: str, state: CheckpointState) -> None:
    """Archives the leftovers of a run that committed no batch: the checkpoint, the ledger, and the files that it wrote
    to the output. Raises: OSError, Spark's errors.
    """
    moment = archive_moment()
    storage, root = storage_of(root)
    archive = archive_path(root, state.version, moment)
    ledger = state.ledger
    if ledger is not None:
        for output in ledger.added_files:
            _archive_output(*storage_of(output), datetime.fromisoformat(ledger.written_at), moment)
    # the ledger last: after an interruption, it still says which outputs to archive
    for path in (checkpoint_path(root, state.version), ledger_path(root, state.version)):
        if storage.exists(path):
            storage.move(path, f"{archive}/{path.rpartition('/')[2]}")


def _archive_output(storage: Storage, folder: str, began: datetime, moment: str) -> None:
    """Archives only Spark's files that are not older than the run; the folder can contain other files."""
    files = sort_files(storage.files(folder), BatchLog(f"{folder}/{SINK_LOG}"), with_retention=False)
    for file in files.leftover:
        if file.modified >= began.timestamp() * 1000:
            move_with_checksum(storage, f"{folder}/{file.name}", f"{archive_folder(folder)}/{moment}/{file.name}")


def write_ledger(storage: Storage, root: str, ledger: Ledger) -> None:
    """Writes `ledger` beside the checkpoint of its version under `root`."""
    storage.write_text(ledger_path(root, ledger.version), ledger.to_json())


def remove_finished(storage: Storage, root: str, version: int) -> None:
    """Removes the versions under `root` before `version` that start over on every run and have no output location,
    such as those of a memory sink.

    Each run creates another version, whose checkpoint is useless after the run. sqlstream removes nothing else from a
    target's storage. Checkpoints of other queries stay.
    """
    numbers = (number for name in storage.names(root) if (number := version_number(name)) and number < version)
    for number in numbers:
        with suppress(OSError, LedgerUnreadableError, *SPARK_ERRORS):  # a remaining version does no harm
            _remove_if_useless(storage, root, number)


def _remove_if_useless(storage: Storage, root: str, version: int) -> None:
    text = storage.read_text(ledger_path(root, version))
    ledger = None if text is None else read_ledger(text)
    if ledger is not None and ledger.reason == Action.FRESH_EACH_RUN and ledger.output is None:
        storage.remove(version_root(root, version))


def repartition_state(session: SparkSession, checkpoint: str, partitions: int) -> None:
    """Adds a batch to `checkpoint` that reads nothing and has the state in `partitions` partitions. Changes no file.

    Raises: Spark's errors. The batch may then have begun.
    """
    manager = session._streamingCheckpointManager  # noqa: SLF001  # its Scala counterpart is public
    manager.repartition(checkpoint, partitions)


def can_log_batches(session: SparkSession, outputs: Sequence[str]) -> bool:
    """Returns whether `log_empty_batch` is possible for these outputs."""

    def find_logs() -> bool:
        for output in outputs:
            sink_log(session, output)
        return True

    return not outputs or call_internal(session, "log of a file sink", find_logs, lambda: False)


def log_empty_batch(session: SparkSession, outputs: Sequence[str], number: int) -> None:
    """Adds batch `number` to the log of each file sink that does not have it, as a batch without rows would.

    Spark 4.3 does not: later the log cannot be read, and the query fails when it compacts the log
    (BATCH_METADATA_NOT_FOUND). Raises: Spark's errors.
    """
    for output in outputs:
        add_empty_batch(session, sink_log(session, output), number)
