"""Archives and removes the stored versions of a query: their checkpoints and ledgers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.storage.batch_logs import move_with_checksum
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.batch_logs import SINK_LOG, BatchLog
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
from sqlstream.state.plan import Action, CheckpointState

StorageOf = Callable[[str], tuple[Storage, str]]
"""Returns the storage of a path, and the path in the form that this storage accepts."""


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
