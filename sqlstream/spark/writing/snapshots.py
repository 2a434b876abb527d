"""The snapshots of an output: folders that each contain all of its rows, and which of them readers see.

On a local disk the output is a symbolic link to a snapshot. A rename replaces the link, so readers see one snapshot or
the other. No two files have the same name, so a reader that has listed one snapshot never reads a file of another.
Other file systems have no links: the snapshot moves to the output's path, from which the previous one has moved away.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Protocol

from pyspark.sql import DataFrame

from sqlstream.spark.storage.local import LocalStorage, replace_link
from sqlstream.spark.storage.storage import Storage, storage_for
from sqlstream.spark.writing.micro_batches import BatchWriter, MicroBatch, SinkTarget, discard, in_few_files
from sqlstream.state.layout import SNAPSHOT_NAME, snapshot_folder

KEPT_SECONDS = 60
"""Time for which a snapshot stays after its replacement. A reader that lists a folder while it is removed would miss
files without an error.
"""


class Snapshots(Protocol):
    """The snapshots of one output. Their names are `<batch>-<id of the query>`."""

    @property
    def current(self) -> str | None:
        """The name of the snapshot that readers see, None if there is none."""

    def folder_of(self, name: str) -> str:
        """Returns the folder to which the snapshot `name` is written."""

    def switch_to(self, name: str) -> None:
        """Makes readers see the snapshot `name`, which is complete in its folder. Raises: OSError, Spark's errors."""

    def remove_old(self, query_id: str) -> None:
        """Removes the snapshots of the query that no reader can still be reading, see `KEPT_SECONDS`."""


def snapshots_of(storage: Storage, output: str) -> Snapshots:
    """Returns the snapshots of the output at this path."""
    return _LinkedSnapshots(output) if isinstance(storage, LocalStorage) else _MovedSnapshots(storage, output)


class _LinkedSnapshots:
    """Snapshots on a local disk, beside a link."""

    def __init__(self, output: str) -> None:
        self._output = Path(output)
        self._folder = Path(snapshot_folder(output))
        self._previous: str | None = None

    @property
    def current(self) -> str | None:
        return self._output.readlink().name if self._output.is_symlink() else None

    def folder_of(self, name: str) -> str:
        return str(self._folder / name)

    def switch_to(self, name: str) -> None:
        folder = self._folder / name
        (folder / SNAPSHOT_NAME).write_text(name, encoding="utf-8")
        self._previous = self.current
        # a relative link stays valid when the whole storage moves
        replace_link(self._output, os.path.relpath(folder, self._output.parent), self._folder)

    def remove_old(self, query_id: str) -> None:
        _remove_old(LocalStorage(), str(self._folder), query_id, str(self._output), {self.current, self._previous})


class _MovedSnapshots:
    """Snapshots on a file system without links. Between two moves, nothing is at the output's path."""

    def __init__(self, storage: Storage, output: str) -> None:
        self._storage, self._output = storage, output
        self._folder = snapshot_folder(output)
        self._previous: str | None = None

    @property
    def current(self) -> str | None:
        return self._storage.read_text(f"{self._output}/{SNAPSHOT_NAME}")

    def folder_of(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def switch_to(self, name: str) -> None:
        self._storage.write_text(f"{self._folder}/{name}/{SNAPSHOT_NAME}", name)
        self._previous = self.current
        if self._previous is not None:
            self._storage.move(self._output, f"{self._folder}/{self._previous}")
        self._storage.move(f"{self._folder}/{name}", self._output)

    def remove_old(self, query_id: str) -> None:
        _remove_old(self._storage, self._folder, query_id, self._output, {self._previous})


def _remove_old(storage: Storage, folder: str, query_id: str, output: str, kept: set[str | None]) -> None:
    """Removes the snapshots of a query in `folder`, except those in `kept` and those that were replaced less than
    `KEPT_SECONDS` before `output`, by the clock of the storage. Other queries' snapshots stay.
    """
    own_names = (name for name in storage.names(folder) if name.endswith(f"-{query_id}"))
    names = sorted(own_names, key=lambda name: int(name.split("-")[0]))
    completed = [storage.modified(f"{folder}/{name}/{SNAPSHOT_NAME}") for name in names]
    # a snapshot is replaced when the next one is complete
    now = storage.modified(f"{output}/{SNAPSHOT_NAME}") or 0.0
    for name, own, replaced in zip(names, completed, [*completed, now][1:], strict=True):
        is_recent = own is not None and replaced is not None and now - replaced < KEPT_SECONDS
        if name not in kept and not is_recent:
            storage.remove(f"{folder}/{name}")


def snapshot_writer(target: SinkTarget) -> BatchWriter | None:
    """Returns the writer for a sink of files if the query replaces its rows, None otherwise."""
    writes = target.model.writes_snapshots_to(target.output)
    return SnapshotWriter(target, target.path) if writes and target.path else None


class SnapshotWriter:
    """Writes each micro-batch as a snapshot: a folder with all rows, to which the output then points.

    A batch that Spark repeats is written only if the output does not show it yet. A killed query leaves the previous
    snapshot or the new one in place, each complete.
    """

    def __init__(self, target: SinkTarget, output: str) -> None:
        self._target, self._output = target, output

    def open(self) -> None:
        """Does nothing: the first batch creates the output."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows to a new folder, and then makes the output point to it. Raises: OSError, Spark's errors."""
        snapshots = snapshots_of(*storage_for(self._output, self._target.frame.sparkSession))
        name = f"{batch.id}-{batch.query_id}"
        if snapshots.current == name:
            discard(rows)
            return
        output = self._target.output
        # a killed attempt may have left files there
        writer = in_few_files(rows, output).write.format(output.format).options(**batch.options).mode("overwrite")
        if output.partition_by:
            writer = writer.partitionBy(*output.partition_by)
        writer.save(snapshots.folder_of(name))
        snapshots.switch_to(name)
        snapshots.remove_old(batch.query_id)
