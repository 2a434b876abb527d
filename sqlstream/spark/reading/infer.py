"""The columns that Spark finds in the data of a source: in a sample of its files, or from its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count, every, lit
from pyspark.sql.types import DataType, DateType, StringType, StructField, StructType, TimestampType

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.files.paths import join
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.preview import NO_BATCH, has_batches, static
from sqlstream.spark.reading.sources import escaped, quoted
from sqlstream.spark.spark_errors import read_error

LISTING = ("pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter")
"""Options of a source that say which of its files are read."""

TIME_PATTERNS: tuple[tuple[DataType, str], ...] = (
    (TimestampType(), r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$"),
    (DateType(), r"^\d{4}-\d\d-\d\d$"),
)
"""Text that is a time. Spark's own inference for JSON (`inferTimestamp`) also takes a zip code for a year."""


@dataclass(frozen=True)
class Inferred:
    """What was found: the columns together, those of each file that has any, how many files were looked at, and how
    many there are.

    `by_file` is empty where the format has no files, whose columns are its own.
    """

    schema: StructType
    by_file: tuple[tuple[str, StructType], ...] = ()
    looked_at: int = 0
    files: int = 0


def infer_columns(inputs: NodeReader, table: SourceTable, most_files: int) -> Inferred:
    """Returns the columns of `table`, from at most `most_files` of its files. Raises: FindingsError."""
    missing = inputs.readers.missing_secrets(table)
    if missing:
        raise FindingsError(missing)
    undeclared = replace(static(table), schema=None)
    if not format_of(table.format).layout:
        return Inferred(_own_columns(inputs, table, undeclared))
    paths = _paths(inputs, undeclared)
    sampled = spread(paths, most_files)
    if not sampled:
        raise FindingsError([_no_files(table)])
    return _infer(_FileReader(inputs, undeclared), sampled, len(paths))


def spread(paths: Sequence[str], most: int) -> list[str]:
    """Returns at most `most` of `paths`, from the first to the last: what has changed over time is seen."""
    if len(paths) <= most:
        return list(paths)
    step = (len(paths) - 1) / max(most - 1, 1)
    return [paths[round(number * step)] for number in range(most)]


def _own_columns(inputs: NodeReader, table: SourceTable, undeclared: SourceTable) -> StructType:
    if has_batches(table):
        try:
            return inputs.open_source(undeclared, None).schema
        except FindingsError as error:
            if NO_BATCH not in str(error.__cause__):
                raise
    return inputs.open_source(replace(table, schema=None, watermark=None), None).schema


def _paths(inputs: NodeReader, table: SourceTable) -> list[str]:
    """The files of the table. Raises: FindingsError, as for a path that is not there."""
    options = {name: value for name, value in table.options.items() if name.lower() in map(str.lower, LISTING)}
    listed = inputs.open_source(replace(table, format="binaryFile", options=options), None)
    try:
        return sorted(row[0] for row in listed.select("path").collect())
    except SPARK_ERRORS as error:
        raise FindingsError([inputs.unreadable(table, error)]) from error


@dataclass(frozen=True)
class _FileReader:
    """Reads some files of a table as Spark would with no schema declared."""

    inputs: NodeReader
    table: SourceTable

    def read(self, paths: Sequence[str], **more: str) -> DataFrame:
        """Returns their rows. Raises: Spark's errors."""
        readers, table = self.inputs.readers, self.table
        options = {"inferSchema": "true", **readers.secrets.resolve_all(table.options), **more}
        if any("=" in folder for path in paths for folder in path.split("/")[:-1]) and "*" not in (table.path or ""):
            options["basePath"] = join(str(readers.root), table.path or "")
        return readers.session.read.format(table.format).options(**options).load([escaped(path) for path in paths])

    def try_read(self, paths: Sequence[str], **more: str) -> DataFrame | None:
        """Returns their rows, None where Spark finds no columns in them. Raises: FindingsError."""
        try:
            return self.read(paths, **more)
        except SPARK_ERRORS as error:
            if read_error(error).condition == "UNABLE_TO_INFER_SCHEMA":
                return None
            raise FindingsError([self.inputs.unreadable(self.table, error)]) from error


def _infer(reader: _FileReader, paths: Sequence[str], files: int) -> Inferred:
    by_file: list[tuple[str, StructType]] = []
    for path in paths:
        frame = reader.try_read([path], dropFieldIfAllNull="true")
        if frame is not None:
            by_file.append((path, frame.schema))
    together = _together(reader, [path for path, _ in by_file]) if by_file else None
    if together is None or not together.fields:
        raise FindingsError([_no_columns(reader.table, len(paths))])
    return Inferred(together, tuple(by_file), len(paths), files)


def _together(reader: _FileReader, paths: Sequence[str]) -> StructType | None:
    """The columns of all files; where Spark cannot merge them, each as the first file that has it."""
    try:
        frame = reader.try_read(paths, mergeSchema="true")
    except FindingsError:
        fields: dict[str, StructField] = {}
        for path in paths:
            for field in reader.read([path]).schema:
                fields.setdefault(field.name, field)
        return StructType(list(fields.values()))
    if frame is None:
        return None
    return _with_times(frame) if reader.table.format == "json" else frame.schema


def _with_times(frame: DataFrame) -> StructType:
    """The columns of JSON, in which Spark sees text where there are times."""
    names = [field.name for field in frame.schema if isinstance(field.dataType, StringType)]
    if not names:
        return frame.schema
    asked = [_is_all(col(quoted(name)), pattern) for name in names for _, pattern in TIME_PATTERNS]
    answers = iter(frame.agg(*(each.alias(str(at)) for at, each in enumerate(asked))).collect()[0])
    found: dict[str, DataType] = {}
    for name in names:
        for data_type, _ in TIME_PATTERNS:
            if next(answers):
                found[name] = data_type
    return StructType([StructField(field.name, found.get(field.name, field.dataType)) for field in frame.schema])


def _is_all(column: Column, pattern: str) -> Column:
    """Whether every value that is there fits, and there is one."""
    return every(coalesce(column.rlike(pattern), lit(True))) & (count(column) > 0)


def _no_files(table: SourceTable) -> Finding:
    return _nothing(table, f"there is no file at {table.path}", "add a file there, or fix the path")


def _no_columns(table: SourceTable, read: int) -> Finding:
    return _nothing(table, f"the {read} files read are empty", "wait for data, or increase --sample")


def _nothing(table: SourceTable, why: str, fix: str) -> Finding:
    place = table.places.get("path", table.location)
    return Finding(
        "source-unreadable", f"source `{table.full_name}` has no data to infer columns from", why, fix, place
    )
