"""Stored outputs: the outputs of models with `materialized: stored`, as tables that other queries read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.operators.inputs import as_read
from sqlstream.compiler.node_ids import stored_id
from sqlstream.location import Location
from sqlstream.project.formats.format import BATCH, STREAM
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secrets import OptionValue
from sqlstream.project.stored import StoredOutput
from sqlstream.project.values import Schema, SourceTable


def stored_tables(
    project: str, models: Mapping[str, CompiledModel], columns: Mapping[str, tuple[Column, ...] | None]
) -> dict[str, SourceTable]:
    """Returns the stored outputs of `models` by unique id, with the `columns` of their models.

    Their paths are those of the sinks: which version of an output exists is known only when a query starts.
    """
    return {
        stored_id(project, model.name): _table(model, model.output, columns.get(unique_id))
        for unique_id, model in models.items()
        if model.config.is_stored and model.output is not None
    }


def _table(model: CompiledModel, output: Output, columns: tuple[Column, ...] | None) -> SourceTable:
    location = model.place_of("materialized")
    return SourceTable(
        source="",
        name=model.name,
        format=output.format,
        path=output.path,
        schema=_schema(columns, location),
        mode=STREAM if model.streams_when_stored else BATCH,
        options=_reader_options(output),
        watermark=None,
        columns=(),
        description=model.file.description,
        tags=(),
        meta={},
        location=location,
        table=output.table,
        on_corrupt="fail" if format_of(output.format).is_parsed else None,
        stored=StoredOutput(model.name),
        previous_name=model.config.previous_name,
    )


def _schema(columns: tuple[Column, ...] | None, location: Location) -> Schema | None:
    """Returns the columns as a schema, None unless all types are known."""
    types = [None if column.type is None else as_read(column.type) for column in columns or ()]
    if not columns or None in types:
        return None
    pairs = zip(columns, types, strict=True)
    return Schema(location, ddl=", ".join(f"{column.in_sql} {kind}" for column, kind in pairs))


def _reader_options(output: Output) -> dict[str, OptionValue]:
    """Returns the options of the sink that its readers also need, such as the separator of CSV files."""
    shared = {name.lower() for name, option in format_of(output.format).options.items() if option.use == "anywhere"}
    return {name: value for name, value in output.options.items() if name.lower() in shared}


def stored_inputs(compiled: CompiledProject, model: CompiledModel) -> tuple[str, ...]:
    """Returns the names of the models whose stored outputs the query of `model` reads."""
    return tuple(table.name for table in compiled.tables_of(model.unique_id) if table.stored is not None)


def stages(compiled: CompiledProject, models: Sequence[CompiledModel]) -> list[list[CompiledModel]]:
    """Returns `models` in stages: each reads only stored outputs of models in earlier stages, or of no `models`."""
    numbers: dict[str, int] = {}
    chosen = {model.unique_id: model for model in models}
    for node in (node for node in compiled.graph.order if node in chosen):
        read = [numbers[name] for name in stored_inputs(compiled, chosen[node]) if name in numbers]
        numbers[chosen[node].name] = 1 + max(read, default=-1)
    found: list[list[CompiledModel]] = [[] for _ in range(1 + max(numbers.values(), default=-1))]
    for model in models:
        found[numbers[model.name]].append(model)
    return found
