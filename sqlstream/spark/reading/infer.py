"""Infers the columns of a source from a sample of its files or its format, and compares them with declared ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, col, count, every, lit
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType

from sqlstream.errors import Finding, FindingsError
from sqlstream.project.declarations.on_corrupt import CORRUPT_COLUMN
from sqlstream.project.declarations.schema_changes import RESCUED, rescues
from sqlstream.project.files.paths import escaped, join
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.spark.jvm.errors import read_error
from sqlstream.spark.jvm.gateway import SPARK_ERRORS
from sqlstream.spark.reading.inputs import NodeReader
from sqlstream.spark.reading.preview import as_batch, open_batch
from sqlstream.spark.reading.sources import has_own_columns, quoted
from sqlstream.spark.reading.type_text import (
    TIME_PATTERNS,
    TIMES,
    stored_fits,
    text_fits,
    text_fits_within,
    type_text,
    without_todays_times,
)

LISTING = ("pathGlobFilter", "recursiveFileLookup", "modifiedBefore", "modifiedAfter")
"""Options that select the files of a source."""


@dataclass(frozen=True)
class Inferred:
    """The inferred columns: of all files together, and of each file with columns; the numbers of files read and of all
    files. `by_file` is empty for a format without files, which has fixed columns.
    """

    schema: StructType
    by_file: tuple[tuple[str, StructType], ...] = ()
    looked_at: int = 0
    files: int = 0


def infer_columns(inputs: NodeReader, table: SourceTable, max_files: int) -> Inferred:
    """Returns the columns of `table`, from at most `max_files` of its files. Raises: FindingsError."""
    missing = inputs.readers.missing_secrets(table)
    if missing:
        raise FindingsError(missing)
    if not format_of(table.format).layout:
        return Inferred(_format_columns(inputs, table))
    undeclared = as_batch(table).model_copy(update={"spark_schema": None})
    paths = _paths(inputs, undeclared)
    sampled = spread(paths, max_files)
    if not sampled:
        why = f"there is no file at {table.path}"
        raise FindingsError([_no_data(table, why, "add a file there, or fix the path")])
    return _infer(_FileReader(inputs, undeclared), sampled, len(paths))


def spread(paths: Sequence[str], most: int) -> list[str]:
    """Returns at most `most` of `paths`, evenly from the first to the last, so that changes over time are found."""
    if len(paths) <= most:
        return list(paths)
    step = (len(paths) - 1) / max(most - 1, 1)
    return [paths[round(number * step)] for number in range(most)]


def _format_columns(inputs: NodeReader, table: SourceTable) -> StructType:
    undeclared = table.model_copy(update={"spark_schema": None, "watermark": None, "schema_changes": None})
    frame = open_batch(inputs, undeclared)
    return (inputs.open_source(undeclared, None) if frame is None else frame).schema


def list_files(inputs: NodeReader, table: SourceTable) -> DataFrame:
    """Returns a row for each file of `table`, a static table without a schema, with its `path` and
    `modificationTime`. Raises: FindingsError, for example if the path does not exist.
    """
    # binaryFile lists files as every source of files does, and reads none without its column `content`
    options = {name: value for name, value in table.options.items() if name.lower() in map(str.lower, LISTING)}
    update = {"format": "binaryFile", "options": options, "schema_changes": None}
    return inputs.open_source(table.model_copy(update=update), None)


def _paths(inputs: NodeReader, table: SourceTable) -> list[str]:
    """Returns the files of the table. Raises: FindingsError."""
    listed = list_files(inputs, table)
    try:
        return sorted(row[0] for row in listed.select("path").collect())
    except SPARK_ERRORS as error:
        raise FindingsError([inputs.unreadable(table, error)]) from error


@dataclass(frozen=True)
class _FileReader:
    """Reads files of a table without its declared schema."""

    inputs: NodeReader
    table: SourceTable

    def read(self, paths: Sequence[str], schema: StructType | None = None, **more: str) -> DataFrame:
        """Returns the rows of the files, with these columns if they are given. Raises: Spark's errors."""
        readers, table = self.inputs.readers, self.table
        options = {"inferSchema": "true", **readers.secrets.resolve_all(table.options), **more}
        if any("=" in folder for path in paths for folder in path.split("/")[:-1]) and "*" not in (table.path or ""):
            options["basePath"] = join(str(readers.root), table.path or "")
        reader = readers.session.read.format(table.format).options(**options)
        return (reader if schema is None else reader.schema(schema)).load([escaped(path) for path in paths])

    def try_read(self, paths: Sequence[str], **more: str) -> DataFrame | None:
        """Returns the rows of the files, None if Spark finds no columns in them. Raises: FindingsError."""
        try:
            return self.read(paths, None, **more)
        except SPARK_ERRORS as error:
            if read_error(error).condition == "UNABLE_TO_INFER_SCHEMA":
                return None
            raise FindingsError([self.inputs.unreadable(self.table, error)]) from error


def _infer(reader: _FileReader, paths: Sequence[str], files: int) -> Inferred:
    by_file: list[tuple[str, StructType]] = []
    for path in paths:
        # a field that is always null would be text in this file, and differ from others without a reason
        frame = reader.try_read([path], dropFieldIfAllNull="true")
        if frame is not None:
            by_file.append((path, frame.schema))
    merged = _merged_schema(reader, [path for path, _ in by_file]) if by_file else None
    if merged is None or not merged.fields:
        why = f"the {len(paths)} files read are empty"
        raise FindingsError([_no_data(reader.table, why, "wait for data, or increase --sample")])
    return Inferred(merged, tuple(by_file), len(paths), files)


def _merged_schema(reader: _FileReader, paths: Sequence[str]) -> StructType | None:
    """Returns the columns of all files. If Spark cannot merge them, each column is as in the first file that has it."""
    try:
        frame = reader.try_read(paths, mergeSchema="true")
    except FindingsError:
        return StructType(list(_first_fields(reader, paths)))
    if frame is None:
        return None
    schema = _with_times(frame) if reader.table.format == "json" else frame.schema
    return without_todays_times(schema, lambda texts: reader.read(paths, texts))


def _first_fields(reader: _FileReader, paths: Sequence[str]) -> Iterator[StructField]:
    known: set[str] = set()
    for path in paths:
        schema = reader.read([path]).schema
        yield from (field for field in schema if field.name not in known)
        known.update(schema.names)


def _with_times(frame: DataFrame) -> StructType:
    """Returns the columns of JSON with the types of times, for which Spark infers text."""
    names = [field.name for field in frame.schema if isinstance(field.dataType, StringType)]
    if not names:
        return frame.schema
    cases = [(name, data_type, pattern) for name in names for data_type, pattern in TIME_PATTERNS]
    tests = (_all_match(col(quoted(name)), pattern).alias(str(at)) for at, (name, _, pattern) in enumerate(cases))
    answers = frame.agg(*tests).collect()[0]
    times = {name: data_type for (name, data_type, _), is_time in zip(cases, answers, strict=True) if is_time}
    return StructType([StructField(field.name, times.get(field.name, field.dataType)) for field in frame.schema])


def _all_match(column: Column, pattern: str) -> Column:
    """Returns whether there are values, and all match the pattern; nulls are ignored."""
    return every(coalesce(column.rlike(pattern), lit(True))) & (count(column) > 0)


def _no_data(table: SourceTable, why: str, fix: str) -> Finding:
    place = table.locations.get("path", table.location)
    return Finding(
        "source-unreadable", f"source `{table.full_name}` has no data to infer columns from", why, fix, place
    )


def merge_columns(table: SourceTable, inferred: Inferred) -> SourceColumns:
    """Returns the declared columns of `table` with their types, in order, then the undeclared columns of its data."""
    declared = _declared(table)
    found = {field.name.lower(): field.dataType for field in inferred.schema}
    described = {column.name.lower(): column.description for column in table.columns}
    names = {name.lower(): name for name in (*inferred.schema.names, *declared)}
    declared_types = {name.lower(): data_type for name, data_type in declared.items()}
    order = [*declared_types, *(name for name in found if name not in declared_types)]
    columns = tuple(
        InferredColumn(
            names[key],
            type_text(declared_types.get(key) or found[key]),
            described.get(key, ""),
            _notes(table, inferred, key, declared_types.get(key), found.get(key)),
        )
        for key in order
    )
    keys = ("schema", "schema_file")
    return SourceColumns(
        table=table.full_name,
        format=table.format,
        columns=columns,
        looked_at=inferred.looked_at,
        empty=inferred.looked_at - len(inferred.by_file),
        files=inferred.files,
        is_fixed=not (inferred.by_file or has_own_columns(table)),
        replaces=next((key for key in keys if key in table.locations), None),
        indent=max(table.location.column - 1 - len("name: "), 0),  # the location is that of the name
        differences=tuple(_differences(table, inferred)),
        is_compared=bool(declared) and (bool(inferred.by_file) or has_own_columns(table)),
    )


def _declared(table: SourceTable) -> Mapping[str, DataType]:
    if table.spark_schema is None:
        return {}
    if table.spark_schema.json is not None:
        schema: DataType = StructType.fromJson(json.loads(table.spark_schema.json))
    else:
        schema = DataType.fromDDL(table.spark_schema.ddl or "")
    fields = schema.fields if isinstance(schema, StructType) else []
    return {field.name: field.dataType for field in fields if not (rescues(table) and field.name == RESCUED)}


def _notes(
    table: SourceTable, inferred: Inferred, key: str, declared: DataType | None, found: DataType | None
) -> tuple[str, ...]:
    if found is None:
        return ("none of the files read contains it",) if inferred.by_file else (f"{table.format} has no such column",)
    if declared is not None and has_own_columns(table) and type_text(found) != type_text(declared):
        return (f"declared type, but the table has {type_text(found)}",)
    notes = []
    if declared is not None and inferred.by_file:
        fits = text_fits if format_of(table.format).is_parsed else stored_fits
        if not fits(found, declared) and not _has_pattern(table):
            notes.append(f"declared type, but the files have {type_text(found)}")
    differing = _by_type(inferred, key)
    if len(differing) > 1:
        shown = ", ".join(f"{name} in {len(paths)}" for name, paths in differing.items())
        rare = min(differing.values(), key=len)[0].rsplit("/", 1)[-1]
        notes.append(f"files differ: {shown}, such as {rare}")
    return tuple(notes)


def _by_type(inferred: Inferred, key: str) -> Mapping[str, list[str]]:
    """Returns the files by type of a column, the most frequent type first."""
    types = [
        (type_text(field.dataType), path)
        for path, schema in inferred.by_file
        for field in schema
        if field.name.lower() == key
    ]
    counted = Counter(name for name, _ in types)
    return {name: [path for other, path in types if other == name] for name, _ in counted.most_common()}


def _differences(table: SourceTable, inferred: Inferred) -> Iterator[ColumnDifference]:
    """Yields how the data of `table` differs from its declared columns; nothing without any."""
    declared = _declared(table)
    if not declared:
        return
    valued = {field.name.lower() for _, schema in inferred.by_file for field in schema}
    # Spark finds columns in any letter case, but fields of JSON only in that of the column
    key: Callable[[str], str] = str if table.format == "json" else str.lower
    found = {key(field.name): field for field in inferred.schema if field.name != CORRUPT_COLUMN}
    for name, kind in declared.items():
        field = found.pop(key(name), None)
        # Spark takes a column without values for text
        if field is None or name.lower() in valued or not inferred.by_file:
            yield from _differing(table, name, kind, None if field is None else field.dataType)
    for field in found.values():
        yield ColumnDifference("new", field.name, None, type_text(field.dataType))


def _differing(table: SourceTable, path: str, declared: DataType, found: DataType | None) -> Iterator[ColumnDifference]:
    if found is None:
        yield ColumnDifference("missing", path, type_text(declared), None)
    elif isinstance(declared, StructType) and isinstance(found, StructType):
        known = {field.name: field.dataType for field in found}
        for each in declared:
            yield from _differing(table, f"{path}.{each.name}", each.dataType, known.pop(each.name, None))
        for name, kind in known.items():
            yield ColumnDifference("new", f"{path}.{name}", None, type_text(kind))
    elif isinstance(declared, ArrayType) and isinstance(found, ArrayType):
        yield from _differing(table, f"{path}[]", declared.elementType, found.elementType)
    elif isinstance(declared, MapType) and isinstance(found, StructType):
        # Spark takes a map for an object with fields
        values = (_differing(table, f"{path}[]", declared.valueType, field.dataType) for field in found)
        yield from dict.fromkeys(one for several in values for one in several if one.kind != "missing")
    elif not _fits(table, found, declared):
        yield ColumnDifference("retyped", path, type_text(declared), type_text(found))


def _fits(table: SourceTable, found: DataType, declared: DataType) -> bool:
    """Returns whether data of the type `found` can be read as `declared`, with the keys and options of the table."""
    if not format_of(table.format).is_parsed:
        return stored_fits(found, declared)
    if isinstance(declared, TIMES) and (_has_pattern(table) or table.timestamp_unit is not None):
        return True
    return text_fits_within(found, declared)


def _has_pattern(table: SourceTable) -> bool:
    """Returns whether an option says in which form the data has times."""
    return any(name.lower() in ("timestampformat", "dateformat") for name in table.options)


@dataclass(frozen=True)
class ColumnDifference:
    """How the data differs from the declaration. `kind` is `new` (not declared), `missing` (not in the data that was
    read) or `retyped` (of a type that the declared one cannot hold). `path` is the column, or a field within one:
    `item.lot`, `items[].color`. Types are Spark's DDL, None where there is none.
    """

    kind: str
    path: str
    declared: str | None
    found: str | None


@dataclass(frozen=True)
class InferredColumn:
    """One column: its type in Spark's DDL, its declared type, and `notes` if the types differ."""

    name: str
    data_type: str
    description: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class SourceColumns:
    """The columns of table `table`, read from `looked_at` of its `files` files, of which `empty` have no columns. All
    three are 0 for formats without files. `differences` are those from the declared columns, if `is_compared`: there
    are some, and the data has columns. `is_fixed`: the format determines the columns and refuses declared types.
    `replaces` is the other key that declares the schema, None without one. `indent` is the indentation of the table's
    keys.
    """

    table: str
    format: str
    columns: tuple[InferredColumn, ...]
    looked_at: int
    empty: int
    files: int
    is_fixed: bool
    replaces: str | None
    indent: int
    differences: tuple[ColumnDifference, ...] = ()
    is_compared: bool = False
