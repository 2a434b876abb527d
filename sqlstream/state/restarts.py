"""Whether Spark can restart a query from its checkpoint."""

from __future__ import annotations

from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.project.databases.dialects import dialect_of
from sqlstream.project.formats.formats import format_of


def unrestartable(compiled: CompiledProject, model: CompiledModel) -> str | None:
    """Returns why the query of `model` cannot restart after a failure, None if it can.

    Spark cannot restart some queries from a checkpoint, and some batch models would append their rows twice.
    """
    if not model.streaming:
        output = model.output
        if output is None or format_of(output.format).replaces_rows or dialect_of(output.format, output.options):
            return None
        return f"it adds its rows to {output.format}"
    for output in model.outputs:
        if not format_of(output.format).is_restartable:
            return f"it writes to {output.format}"
    for table in compiled.tables_of(model.unique_id):
        if not format_of(table.format).is_restartable:
            return f"`{table.full_name}` reads a {table.format}"
    return None
