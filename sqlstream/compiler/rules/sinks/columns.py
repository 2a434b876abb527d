"""Rules on the columns that a sink receives: partition columns, duplicate names, types it cannot write.

`tests/spark/test_sink_types.py` asks the installed Spark about types.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.rules.rule import Problem, Problems, output_rule
from sqlstream.errors import Finding
from sqlstream.numbers import plural
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.data_types import Array, DataType, Map, Primitive, Struct, type_name

_NO_FOLDER_NAMES = frozenset({"void", "variant", "interval", "array", "map", "struct", "geometry", "geography"})


@output_rule("partition-column")
def partition_columns(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """Partition columns must be columns of the model with simple types, and leave at least one column for the files."""
    columns = compiled.columns.get(model.unique_id)
    if columns is None:
        return
    yield from _partition_names(model, output, [column.name for column in columns])
    partitions = {name.lower() for name in output.partition_by}
    for column in columns:
        if column.name.lower() in partitions and column.type is not None and unfit_partition(column.type):
            yield Problem(
                f"sink `{output.sink}` partitions by `{column.name}` of `{model.name}`, whose type is {column.type}",
                "partition values become folder names, so the type must be simple",
                "partition by one of its parts, or by cast(... as string)",
                model.location_of("partition_by"),
            )


@output_rule("sink-schema")
def sink_schemas(compiled: CompiledProject, model: CompiledModel, output: Output) -> Problems:
    """A sink cannot write some columns; the rule checks the columns that the compiler knows."""
    columns = compiled.columns.get(model.unique_id)
    if columns is None:
        return
    partitions = {name.lower() for name in output.partition_by}
    written = [column for column in columns if column.name.lower() not in partitions]
    yield from _repeated_names(model, output, [column.name for column in columns], exact=False)
    yield from _refused_names(model, output, columns)
    yield from _unfit_types(model, output, written)
    yield from _unfit_counts(model, output, columns, written)


def column_findings(
    model: CompiledModel, output: Output, names: Sequence[str], *, exact: bool = False
) -> list[Finding]:
    """Returns the errors in the `names` of the columns of `model`; `exact`: letter case matters."""
    return [*_partition_names(model, output, names), *_repeated_names(model, output, names, exact=exact)]


def _partition_names(model: CompiledModel, output: Output, names: Sequence[str]) -> Iterator[Finding]:
    known, place = {name.lower() for name in names}, model.location_of("partition_by")
    if known and known <= {name.lower() for name in output.partition_by}:
        message = f"sink `{output.sink}` partitions by every column of `{model.name}`"
        why = "partition_by columns become folder names, so no column is left for the files"
        yield Finding("partition-column", message, why, "remove at least one column from partition_by", place)
        return
    setting = "partition_by" if model.config.partition_by else f"partition_by of the sink, {output.location}"
    for column in output.partition_by:
        if column.lower() not in known:
            yield Finding(
                "partition-column",
                f"sink `{output.sink}` partitions by `{column}`, which is not a column of `{model.name}`",
                f"the columns of `{model.name}` are {', '.join(names)}",
                f"add `{column}` to the select list, or change {setting}",
                place,
            )


def _repeated_names(model: CompiledModel, output: Output, names: Sequence[str], *, exact: bool) -> Iterator[Finding]:
    """Yields a finding for each name of several columns. Spark refuses them in a batch of files; a stream writes files
    that nobody can read.
    """
    by_name: dict[str, list[str]] = {}
    facts = format_of(output.format)
    why = (
        f"sink `{output.sink}` writes to a table, whose column names are case-insensitive"
        if facts.is_database
        else f"sink `{output.sink}` writes {output.format} files, which Spark could not read back; column names are "
        "case-insensitive"
    )
    for name in names if facts.writes_files or facts.is_table or facts.is_database else ():
        by_name.setdefault(name if exact else name.lower(), []).append(name)
    for same in by_name.values():
        if len(same) > 1:
            yield Finding(
                "sink-schema",
                f"`{model.name}` has several columns with the same name: {', '.join(f'`{name}`' for name in same)}",
                why,
                "give each column a unique name with `as`",
                model.file.location,
            )


def _refused_names(model: CompiledModel, output: Output, columns: Sequence[Column]) -> Problems:
    """Yields a problem for each column name that the format refuses; with column mapping Delta takes any name."""
    refused = set(format_of(output.format).name_refuses)
    is_mapped = any(name.lower().startswith("delta.columnmapping.") for name in output.options)
    for column in columns if not is_mapped else ():
        if refused & set(column.name):
            shown = ", ".join(repr(character) for character in sorted(refused & set(column.name)))
            yield Problem(
                f"sink `{output.sink}` cannot write the column `{column.name}` of `{model.name}`",
                f"a column name in a {output.format} table cannot contain {shown}",
                "give the column another name with `as`, or set delta.columnMapping.mode: name in the sink's options",
                model.file.location,
            )


def _unfit_types(model: CompiledModel, output: Output, written: Sequence[Column]) -> Problems:
    for column in written:
        why = None if column.type is None else unwritten_reason(output.format, column.type)
        if why is not None:
            is_nested = isinstance(column.type, Array | Map | Struct) or column.type == Primitive("variant")
            text = f"to_json({column.in_sql})" if is_nested else f"cast({column.in_sql} as string)"
            yield Problem(
                f"sink `{output.sink}` cannot write the column `{column.name}` of `{model.name}`",
                why,
                f"use {text} as {column.in_sql}, or another format",
                model.location_of("sink"),
            )


def _unfit_counts(
    model: CompiledModel, output: Output, columns: Sequence[Column], written: Sequence[Column]
) -> Problems:
    """Yields a problem for a text file without exactly one column, and for a Parquet file without columns."""
    facts = format_of(output.format)
    message = f"sink `{output.sink}` cannot write the columns of `{model.name}`"
    if facts.holds_one_string and len(written) != 1:
        count = plural(len(written), "column")
        why = f"the model has {count} to write, but a text file holds exactly one string column"
        fix = "select one string, for example concat_ws(',', *) as value or to_json(struct(*)) as value"
        yield Problem(message, why, fix, model.location_of("sink"))
    elif facts.needs_fields and not columns:
        why = "the model has no columns, and a Parquet file needs at least one"
        yield Problem(message, why, "select at least one column", model.location_of("sink"))


def unwritten_reason(format_name: str, type_: DataType) -> str | None:
    """Returns why files of a format cannot store a type; None if they can, or if that is not known."""
    names = [type_name(part) for part in _parts(type_)]
    facts = format_of(format_name)
    if "time" in names:
        return f"its type is {type_}, and Spark 4.3 does not start a query with a TIME column"
    if facts.holds_one_string and names[0] not in ("string", ""):
        return f"its type is {type_}, but a text file holds only strings"
    if not facts.unwritten_types.isdisjoint(names):
        return f"its type is {type_}, which Spark cannot write as {format_name}"
    return _unfit_struct(type_) if facts.needs_fields else None


def unfit_partition(type_: DataType) -> bool:
    """Returns whether values of a type cannot be in names of folders (INVALID_PARTITION_COLUMN_DATA_TYPE)."""
    collated = isinstance(type_, Primitive) and type_.collation not in (None, "UTF8_BINARY")
    return collated or type_name(type_) in _NO_FOLDER_NAMES


def _unfit_struct(type_: DataType) -> str | None:
    """Returns why Parquet cannot store a struct: it is empty, or has two fields with one name and different types."""
    for struct in (part for part in _parts(type_) if isinstance(part, Struct)):
        if not struct.fields:
            return f"its type is {type_}, and Parquet has no struct without fields"
        types = {field.name: field.type for field in reversed(struct.fields)}  # reversed: the first of a name stays
        different = next((field.name for field in struct.fields if field.type != types[field.name]), None)
        if different is not None:
            return f"it has two fields `{different}` with different types, which Parquet treats as one"
    return None


def _parts(type_: DataType) -> Iterator[DataType]:
    """Yields a type and all types inside it."""
    yield type_
    parts: list[DataType] = []
    if isinstance(type_, Array):
        parts = [type_.element]
    elif isinstance(type_, Map):
        parts = [type_.key, type_.value]
    elif isinstance(type_, Struct):
        parts = [field.type for field in type_.fields]
    for part in parts:
        yield from _parts(part)
