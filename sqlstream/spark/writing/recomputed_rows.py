"""Replaces the rows of a range in a sink by recomputed ones, so that each reader sees the old rows or the new ones.

A table changes in one commit, a database in one transaction. A file sink gets its new files first, which no log lists;
then one new entry of its log, a compact one, lists them instead of the old files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr

from sqlstream.spark.storage.checkpoints import read_sink_log
from sqlstream.spark.storage.hadoop import hadoop_file_system
from sqlstream.spark.storage.storage import Storage, storage_for
from sqlstream.spark.writing.databases.writer import DatabaseWriter
from sqlstream.spark.writing.merged_files import move_into_output, new_archive, written_files
from sqlstream.spark.writing.micro_batches import MicroBatch, SinkTarget, column_of, discard, in_few_files
from sqlstream.spark.writing.table_formats.table import FormatTable
from sqlstream.spark.writing.table_formats.table_writers import create_or_extend
from sqlstream.state.batch_logs import SINK_LOG
from sqlstream.state.merged_files import recomputed_entry
from sqlstream.state.output_files import StoredFile
from sqlstream.state.replacements import ColumnRange

_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

_WRITING = "recomputed"
"""The folder in the archive of an output for files that are not moved into the output yet."""


class RangeWriter:
    """Writes the rows of a range to a folder of Parquet files, from the batch `number` of a query. The other batches of
    the query have none to write.
    """

    def __init__(self, condition: str, folder: str, number: int) -> None:
        self._condition, self._folder, self._number = condition, folder, number

    def open(self) -> None:
        """Does nothing."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Writes the rows. Raises: Spark's errors."""
        if batch.id == self._number:
            rows.where(self._condition).write.mode("overwrite").parquet(self._folder)
        else:
            discard(rows)


def replace_in_table(target: SinkTarget, table: FormatTable, rows: DataFrame, found: ColumnRange) -> None:
    """Replaces a range in a table of Delta Lake or Iceberg in one commit. Raises: Spark's errors."""
    create_or_extend(target, table)
    aligned = in_few_files(table.align(rows), target.output)
    aligned.writeTo(table.name).overwrite(expr(found.condition))


def replace_in_database(
    target: SinkTarget, writer: DatabaseWriter, rows: DataFrame, found: ColumnRange, batch: MicroBatch
) -> int:
    """Replaces a range in a table of a database in one transaction, and returns how many rows it had. Raises:
    FindingsError, RefusedRowsError, DatabaseError, Spark's errors.
    """
    session, name = rows.sparkSession, found.column
    writer.open()
    since, until = (session.range(1).select(expr(limit).alias(name)) for limit in found.limits)
    return writer.replace_range(rows.select(*map(column_of, target.frame.columns)), since.union(until), batch)


@dataclass(frozen=True)
class NewFiles:
    """Files in the output of a file sink that its log does not list yet, with their URIs, and the names of the files
    that they `replace`.
    """

    target: SinkTarget
    storage: Storage
    output: str
    files: tuple[tuple[str, StoredFile], ...]
    replaced: tuple[str, ...]

    def list_in_log(self, number: int) -> None:
        """Adds the compact entry `number` to the log of the sink, which has all entries before it. Readers then see the
        new files instead of the old ones. Raises: OSError, Spark's errors.
        """
        log = read_sink_log(self.storage, self.output)
        entry = recomputed_entry(log, self.replaced, self.files)
        self.storage.write_text(f"{self.output}/{SINK_LOG}/{number}.compact", entry)


class ListingWriter:
    """Makes new files visible with a batch that returns no rows.

    The batch runs first, because that writes the state of the query. If it is repeated after its entry in the log
    exists, Spark's sink does not run it again.
    """

    def __init__(self, new: NewFiles) -> None:
        self._new = new

    def open(self) -> None:
        """Does nothing."""

    def write(self, rows: DataFrame, batch: MicroBatch) -> None:
        """Runs the batch, and then adds the entry of the log. Raises: OSError, Spark's errors."""
        discard(rows)
        self._new.list_in_log(batch.id)


def add_files(target: SinkTarget, rows: DataFrame, replaced: Sequence[str], confirm: Callable[[], None]) -> NewFiles:
    """Adds files with `rows` to the output of a file sink, without listing them. The archive gets a record of them and
    of the files that they replace, so that `maintain` archives those that the log does not list. `confirm` checks that
    the query is still locked.

    Raises: OSError, Spark's errors, what `confirm` raises.
    """
    storage, output = storage_for(target.path or "", target.frame.sparkSession)
    archive = new_archive(storage, output)
    aside = f"{archive}/{_WRITING}"
    use = target.output
    writer = in_few_files(rows, use).write.format(use.format).options(**target.options)
    writer.partitionBy(*use.partition_by).save(aside)
    made = written_files(storage, aside)
    confirm()
    named = {file.name: replace(file, name=_with_new_id(file.name)) for file in made}
    move_into_output(storage, output, archive, replaced, {f"{aside}/{old}": file.name for old, file in named.items()})
    storage.remove(aside)
    files = tuple((_uri(target, f"{output}/{file.name}"), file) for file in named.values())
    return NewFiles(target, storage, output, files, tuple(replaced))


def _with_new_id(name: str) -> str:
    """Returns the path of a file with another UUID. Spark's batch writer gives the files of all folders the same one,
    and the log of a file sink knows files by their names alone.
    """
    folder, slash, base = name.rpartition("/")
    found = _ID.sub(str(uuid4()), base, count=1)
    return f"{folder}{slash}{found if found != base else f'part-{uuid4()}-{base}'}"


def _uri(target: SinkTarget, path: str) -> str:
    """Returns the URI of a file as Spark's logs have it."""
    system, make_path = hadoop_file_system(target.frame.sparkSession, path)
    uri = str(system.makeQualified(make_path(path)).toUri().toString())
    return f"file://{uri.removeprefix('file:')}" if uri.startswith("file:/") and uri[6:7] != "/" else uri
