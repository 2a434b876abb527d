"""Merges the small files of a file sink, so that each reader of its log sees each row once at every moment.

The new files are written outside the output, and moved into it while no log lists them. Then the compact entry of the
log is replaced in one step. The old files stay for readers that have listed them already; `archive_replaced` moves them
to the archive later. A kill at any moment leaves the log with either all old files or all new ones, and the other files
as leftovers that Spark's readers do not see.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from sqlstream.project.files.paths import escaped
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.storage.checkpoints import move_with_checksum
from sqlstream.spark.storage.local import unlink_shared
from sqlstream.spark.storage.storage import Storage
from sqlstream.state.batch_logs import BatchLog
from sqlstream.state.layout import archive_folder, archive_moment
from sqlstream.state.merged_files import (
    MERGED_LOG,
    MergedFile,
    SmallFolder,
    last_compact,
    merge_record,
    merged_entry,
    recorded_files,
)
from sqlstream.state.output_files import OutputFiles, StoredFile, base_name

_MERGING = "merging"
"""The folder in the archive of a merge for files that are not moved into the output yet."""

_MOMENT = "%Y-%m-%dT%H-%M-%SZ"

_EXACTLY = {
    "mergeSchema": "true",  # files that were written before a column was added
    "recursiveFileLookup": "true",  # otherwise Spark adds the columns in the names of folders
    "ignoreCorruptFiles": "false",
    "ignoreMissingFiles": "false",
}
"""Options with which Spark reads all rows and columns of files, or fails."""


@dataclass(frozen=True)
class Merging:
    """Merges files in the folder `output` of a file sink of a format in `FORMATS`, whose `log` was read completely.
    `options` are those of the sink.
    """

    session: SparkSession
    storage: Storage
    output: str
    format: str
    options: Mapping[str, str]
    log: BatchLog

    def merge(self, folders: Sequence[SmallFolder], confirm: Callable[[], None]) -> tuple[int, tuple[str, ...]]:
        """Merges the files of `folders`, which the last compact entry of the log lists. `confirm` checks that the query
        is still locked, before readers can see a change. Returns how many files were replaced, and a sentence for each
        folder that Spark cannot merge.

        Raises: OSError, Spark's errors, what `confirm` raises; readers then see what they saw before.
        """
        number = last_compact(self.log)
        if number is None:
            return 0, ()
        archive = new_archive(self.storage, self.output)
        replaced: list[str] = []
        moved: dict[str, str] = {}
        merged: list[MergedFile] = []
        left: list[str] = []
        for position, folder in enumerate(folders):
            aside = f"{archive}/{_MERGING}/{position}"
            try:
                self._rewrite(folder, aside)
            except SPARK_ERRORS as error:
                left.append(f"{_shown(folder)}: {read_error(error).message}")
                continue
            parent = folder.names[0].rpartition("/")[0]
            for file in written_files(self.storage, aside):
                name = f"{parent}/{file.name}" if parent else file.name
                moved[f"{aside}/{file.name}"] = name
                merged.append(MergedFile(name, file.size, folder.names[0]))
            replaced += folder.names
        if replaced:
            confirm()
            move_into_output(self.storage, self.output, archive, replaced, moved)
            self._replace_entry(number, merged_entry(self.log.texts[number], replaced, merged), archive)
        if self.storage.exists(f"{archive}/{_MERGING}"):
            self.storage.remove(f"{archive}/{_MERGING}")
        return len(replaced), tuple(left)

    def _rewrite(self, folder: SmallFolder, aside: str) -> None:
        """Writes the rows of the files of `folder` to the folder `aside`. Raises: Spark's errors."""
        rows = self._read(*(escaped(f"{self.output}/{name}") for name in folder.names))
        # an earlier merge that was killed cannot have the same archive
        rows.coalesce(folder.files_after).write.format(self.format).options(**self.options).save(aside)
        written = self._read(escaped(aside))
        if written.schema != rows.schema or written.count() != rows.count():
            raise OSError(f"the rows in {aside} are not those of the files that it merges")

    def _read(self, *paths: str) -> DataFrame:
        return self.session.read.format(self.format).options(**_EXACTLY).load(list(paths))

    def _replace_entry(self, number: int, text: str, archive: str) -> None:
        """Replaces an entry of the log. The archive gets the old one.

        The checksum goes first: without one, Hadoop reads a local file unchecked, and with that of another text not at
        all.
        """
        path = self.log.path(number)
        folder, _, name = path.rpartition("/")
        log = folder.rpartition("/")[2]
        self.storage.write_text(f"{archive}/{log}/{name}", self.log.texts[number])
        checksum = f".{name}.crc"
        if self.storage.exists(f"{folder}/{checksum}"):
            self.storage.move(f"{folder}/{checksum}", f"{archive}/{log}/{checksum}")
        self.storage.write_text(path, text)


def new_archive(storage: Storage, output: str) -> str:
    """Returns a new folder in the archive of an output. Its name begins with the time."""
    taken, moment = storage.names(archive_folder(output)), archive_moment()
    names = (moment, *(f"{moment}-{number}" for number in range(2, len(taken) + 3)))
    return f"{archive_folder(output)}/{next(name for name in names if name not in taken)}"


def written_files(storage: Storage, folder: str) -> list[StoredFile]:
    """Returns the files with rows that Spark has written to `folder`."""
    return [file for file in storage.files(folder) if base_name(file.name).startswith("part-")]


def move_into_output(
    storage: Storage, output: str, archive: str, replaced: Sequence[str], moved: Mapping[str, str]
) -> None:
    """Moves new files, by their paths, to their names in the `output`, which no log lists yet. Before that, `archive`
    gets the record of them and of the files that they replace, with which `archive_replaced` finds those that no log
    lists in the end. Raises: OSError, Spark's errors.
    """
    storage.write_text(f"{archive}/{MERGED_LOG}", merge_record(replaced, list(moved.values())))
    for source, name in moved.items():
        move_with_checksum(storage, source, f"{output}/{name}")


def replaced_files(storage: Storage, output: str) -> dict[str, str]:
    """Returns the files of an output that others have replaced or were meant to replace, each with the folder in the
    archive that has the record. The log lists some of them: those that a killed command did not replace, and the new
    ones. Raises: OSError, Spark's errors.
    """
    archive = archive_folder(output)
    found: dict[str, str] = {}  # a merged file can be replaced by a later merge, whose time counts
    for moment in storage.names(archive):
        record = storage.read_text(f"{archive}/{moment}/{MERGED_LOG}")
        if record is not None:
            found.update(dict.fromkeys(recorded_files(record), moment))
    return found


def archive_replaced(
    storage: Storage, output: str, files: OutputFiles, older_than_seconds: float, *, moves: bool, shown: str | None
) -> tuple[int, int]:
    """Moves the files that merges have replaced for longer than `older_than_seconds` to the archive, and returns their
    number, and that of replaced files which stay. Only counts them unless it `moves` them. `files` are those of
    `output` now. `shown` is the folder with hard links of them that readers see, None if they see the output.

    Raises: OSError, Spark's errors.
    """
    unlisted, now, archive = {file.name for file in files.leftover}, datetime.now(UTC), archive_folder(output)
    replaced = {name: moment for name, moment in replaced_files(storage, output).items() if name in unlisted}
    moved = 0
    for name, moment in sorted(replaced.items()):
        merged_at = datetime.strptime(moment[:20], _MOMENT).replace(tzinfo=UTC)
        if (now - merged_at).total_seconds() >= older_than_seconds:
            moved += 1
            if moves:
                if shown is not None:
                    unlink_shared(Path(shown), Path(output), [name])
                move_with_checksum(storage, f"{output}/{name}", f"{archive}/{moment}/{name}")
    return moved, len(replaced) - moved


def _shown(folder: SmallFolder) -> str:
    return folder.names[0].rpartition("/")[0] or "the output"
