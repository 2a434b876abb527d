"""`sqlstream lineage`: shows which columns a column of a model comes from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from sqlstream.app.loading.load import Loaded, load_for_reading
from sqlstream.app.loading.selected_findings import findings_of_selection
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.declared import source_columns
from sqlstream.compiler.graph import kind_of
from sqlstream.compiler.manifest.manifest import output_columns
from sqlstream.errors import Finding, UsageError
from sqlstream.project.wording import did_you_mean, quoted_list
from sqlstream.report.table import table_text


@dataclass(frozen=True)
class Lineage:
    """Columns of `model` with their lineage, and the warnings about it."""

    model: str
    columns: tuple[Column, ...]
    warnings: tuple[Finding, ...]


def trace(request: ProjectRequest, name: str) -> Lineage:
    """Returns the lineage of `name`, which is `model` or `model.column`.

    Raises: FindingsError; UsageError for an unknown name, or a model whose columns are unknown.
    """
    return trace_compiled(load_for_reading(request), name)


def trace_compiled(loaded: Loaded, name: str) -> Lineage:
    """Returns the lineage of `name` in a compiled project. Raises: UsageError as `trace` does."""
    found, column = _model_and_column(loaded.compiled, name)
    model, node = found.name, found.unique_id
    columns = loaded.compiled.columns.get(node)
    if columns is None:
        raise UsageError(f"the columns of `{model}` are unknown: {_reason(loaded.compiled, node)}")
    if column:
        named = tuple(item for item in columns if item.name.lower() == column.lower())
        if not named:
            raise UsageError(f"`{model}` has no column `{column}`; {did_you_mean(column, [c.name for c in columns])}")
        columns = named
    return Lineage(model, columns, findings_of_selection(loaded.compiled, loaded.warnings, [node]))


def _model_and_column(compiled: CompiledProject, name: str) -> tuple[CompiledModel, str]:
    """Returns the model and the column (empty: none) that `name` means: `orders`, `orders.id`, `orders.v2` or
    `orders.v2.id`. Raises: UsageError for an unknown model.
    """
    whole = compiled.model_named(name)
    if whole is not None:
        return whole, ""
    before, _, column = name.rpartition(".")
    model = compiled.model_named(before)
    if model is None:
        first = name.partition(".")[0]
        names = [each.name for each in compiled.models.values()]
        raise UsageError(f"there is no model `{first}`; {did_you_mean(first, names)}")
    return model, column


def _reason(compiled: CompiledProject, node: str) -> str:
    """Returns why the columns of a model are unknown. The cause is its first ancestor with unknown columns."""
    unknown = {name for name, columns in compiled.columns.items() if columns is None}
    while upstream := [read.node_id for read in compiled.models[node].reads if read.node_id in unknown]:
        node = upstream[0]
    model = compiled.models[node]
    read = [(item.node_id, compiled.sources[item.node_id]) for item in model.reads if item.node_id in compiled.sources]
    undeclared = [table for node, table in read if source_columns(node, table) is None]
    if model.file.is_python:
        return f"`{model.name}` is a Python model, and only Spark knows its columns"
    if undeclared:
        shown = quoted_list([f"{table.source}.{table.name}" for table in undeclared])
        return f"declare the schema of the source {shown}, which `{model.name}` reads"
    return f"sqlstream cannot analyze the SQL of `{model.name}`, although Spark may accept it"


HEADER = ("column", "type", "watermark", "made from")


def lineage_text(columns: Sequence[Column]) -> str:
    """Returns a table with a row for each column; `-` means none or unknown."""
    return table_text(HEADER, [_row(column) for column in columns])


def lineage_json(model: str, columns: Sequence[Column]) -> str:
    """Returns the columns of `model` with their origins as one JSON object."""
    return json.dumps({"model": model, "columns": output_columns(tuple(columns))}, indent=2)


def _row(column: Column) -> tuple[str, ...]:
    origins = ", ".join(f"{_shown(node)}.{name}" for node, name in sorted(column.origins))
    time = column.event_time.delay if column.event_time else "-"
    return column.name, "-" if column.type is None else str(column.type), time, origins or "-"


def _shown(node: str) -> str:
    """Returns a source as `source.table`, a model or a seed by its name."""
    parts = node.split(".")
    return ".".join(parts[2:]) if kind_of(node) == "source" else parts[-1]
