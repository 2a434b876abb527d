"""Rules on the columns that a sink receives: partition columns, duplicate names, types it cannot write."""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.rules.rule import rule
from sqlstream.compiler.rules.sinks.kafka import kafka_findings
from sqlstream.compiler.rules.sinks.types import unfit_partition, unwritten_reason
from sqlstream.errors import Finding
from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.types import Array, DataType, Map, Primitive, Struct
from sqlstream.project.wording import counted


@rule("partition-column", "sink-schema")
def sink_columns(compiled: CompiledProject) -> list[Finding]:
    """A sink cannot write some columns; the rule checks the columns that the compiler knows."""
    found: list[Finding] = []
    for unique_id, model in compiled.models.items():
        columns = compiled.columns.get(unique_id)
        if model.output is not None and columns is not None:
            found += column_findings(model, model.output, [column.name for column in columns])
            found += [*_unfit_types(model, model.output, columns), *_unfit_partitions(model, model.output, columns)]
            found += _unfit_counts(model, model.output, columns)
            if model.output.format == "kafka":
                found += kafka_findings(model, model.output, columns)
    return found


def column_findings(
    model: CompiledModel, output: Output, names: Sequence[str], *, exact: bool = False
) -> list[Finding]:
    """Returns what is wrong with the `names` of the columns of `model`; `exact` says that letter case matters."""
    return [*_partitions(model, output, names), *_repeated(model, output, names, exact=exact)]


def _partitions(model: CompiledModel, output: Output, names: Sequence[str]) -> list[Finding]:
    known = {name.lower() for name in names}
    said = "partition_by" if model.config.partition_by else f"partition_by of the sink, {output.location}"
    if known and known <= {name.lower() for name in output.partition_by}:
        return [_nothing_left(model, output)]
    return [
        Finding(
            "partition-column",
            f"sink `{output.sink}` partitions by `{column}`, which is not a column of `{model.name}`",
            f"the columns of `{model.name}` are {', '.join(names)}",
            f"add `{column}` to the select list, or change {said}",
            model.place_of("partition_by"),
        )
        for column in output.partition_by
        if column.lower() not in known
    ]


def _nothing_left(model: CompiledModel, output: Output) -> Finding:
    return Finding(
        "partition-column",
        f"sink `{output.sink}` partitions by every column of `{model.name}`",
        "partition_by columns become folder names, so no column is left for the files",
        "remove at least one column from partition_by",
        model.place_of("partition_by"),
    )


def _repeated(model: CompiledModel, output: Output, names: Sequence[str], *, exact: bool) -> list[Finding]:
    """The findings for columns of one name. Spark refuses them in a batch written to files; a stream writes them, and
    nobody can read the files.
    """
    if not format_of(output.format).writes_files:
        return []
    by_name: dict[str, list[str]] = {}
    for name in names:
        by_name.setdefault(name if exact else name.lower(), []).append(name)
    return [
        Finding(
            "sink-schema",
            f"`{model.name}` has several columns with the same name: {', '.join(f'`{name}`' for name in same)}",
            f"sink `{output.sink}` writes {output.format} files, which Spark could not read back; column names "
            "are case-insensitive",
            "give each column a unique name with `as`",
            model.file.location,
        )
        for same in by_name.values()
        if len(same) > 1
    ]


def _unfit_types(model: CompiledModel, output: Output, columns: Sequence[Column]) -> list[Finding]:
    partitions = {name.lower() for name in output.partition_by}
    found: list[Finding] = []
    for column in columns:
        written = None if column.name.lower() in partitions else column.type
        why = None if written is None else unwritten_reason(output.format, written)
        if why is not None:
            found.append(
                Finding(
                    "sink-schema",
                    f"sink `{output.sink}` cannot write the column `{column.name}` of `{model.name}`",
                    why,
                    _rewrite(column.in_sql, column.type),
                    model.place_of("sink"),
                )
            )
    return found


def _rewrite(name: str, type_: DataType | None) -> str:
    if isinstance(type_, Array | Map | Struct) or type_ == Primitive("variant"):
        return f"use to_json({name}) as {name}, or another format"
    return f"use cast({name} as string) as {name}, or another format"


def _unfit_partitions(model: CompiledModel, output: Output, columns: Sequence[Column]) -> list[Finding]:
    partitions = {name.lower() for name in output.partition_by}
    return [
        Finding(
            "partition-column",
            f"sink `{output.sink}` partitions by `{column.name}` of `{model.name}`, whose type is {column.type}",
            "partition values become folder names, so the type must be simple",
            "partition by one of its parts, or by cast(... as string)",
            model.place_of("partition_by"),
        )
        for column in columns
        if column.name.lower() in partitions and column.type is not None and unfit_partition(column.type)
    ]


def _unfit_counts(model: CompiledModel, output: Output, columns: Sequence[Column]) -> list[Finding]:
    """Parquet files have at least one column, text files exactly one."""
    partitions = {name.lower() for name in output.partition_by}
    written = [column for column in columns if column.name.lower() not in partitions]
    facts = format_of(output.format)
    if facts.holds_one_string and len(written) != 1:
        why = (
            f"the model has {counted(len(written), 'column')} to write, but a text file holds exactly one string column"
        )
        fix = "select one string, for example concat_ws(',', *) as value or to_json(struct(*)) as value"
    elif facts.needs_fields and not columns:
        why, fix = "the model has no columns, and a Parquet file needs at least one", "select at least one column"
    else:
        return []
    message = f"sink `{output.sink}` cannot write the columns of `{model.name}`"
    return [Finding("sink-schema", message, why, fix, model.place_of("sink"))]
