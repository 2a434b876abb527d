"""`sqlstream lineage`: what a column of a model is made from."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.app.loading import load
from sqlstream.app.request import ProjectRequest
from sqlstream.compiler.flow.columns import Column
from sqlstream.errors import Finding, UsageError
from sqlstream.project.nearest import did_you_mean


@dataclass(frozen=True)
class Lineage:
    """Columns of `model`, and the project's warnings."""

    model: str
    columns: tuple[Column, ...]
    warnings: tuple[Finding, ...]


def trace(request: ProjectRequest, name: str) -> Lineage:
    """Returns the lineage of `model`, or of `model.column`.

    Raises: FindingsError, UsageError for a name that is none, or a model whose columns are not known.
    """
    loaded = load(request)
    models = {model.name: node for node, model in loaded.compiled.models.items()}
    model, _, column = name.partition(".")
    if model not in models:
        raise UsageError(f"there is no model `{model}`; {did_you_mean(model, models)}")
    columns = loaded.compiled.columns.get(models[model])
    if columns is None:
        raise UsageError(f"the columns of `{model}` are not known: declare the schemas of the sources that it reads")
    if column:
        found = tuple(item for item in columns if item.name.lower() == column.lower())
        if not found:
            raise UsageError(f"`{model}` has no column `{column}`; {did_you_mean(column, [c.name for c in columns])}")
        columns = found
    return Lineage(model, columns, loaded.warnings)
