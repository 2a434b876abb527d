"""`sqlstream state files`: lists the committed files in a model's output."""

from __future__ import annotations

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.stored.stored_query import OutputFolder, StoredQuery, open_query
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import UsageError
from sqlstream.state.output_files import ModelFiles, OutputFiles


def state_files(request: ProjectRequest, name: str, version: int | None = None, sink: str | None = None) -> ModelFiles:
    """Returns the files in the output of the terminal model `name`, by default in its current version. `sink` is needed
    if its query writes files to several sinks. Writes nothing.

    Raises: FindingsError, also if it is unknown which files are committed; UsageError if `name` is not a terminal
    model or writes no files, there is no such version, or `sink` is missing or wrong.
    """
    with open_query(load_for_reading(request), request, name, version) as query:
        output = _chosen(query, sink)
        found = query.files(output) if query.state.version else OutputFiles()
        return ModelFiles(name, query.state.version, query.storages.of(output.path)[1], found)


def _chosen(query: StoredQuery, sink: str | None) -> OutputFolder:
    outputs, name = query.outputs, query.model.name
    chosen = [output for output in outputs if sink in (None, output.sink)]
    if len(chosen) == 1:
        return chosen[0]
    if not outputs:
        raise UsageError(f"`{name}` has no files to list: {_why_none(query.model)}")
    names = ", ".join(output.sink for output in outputs)
    if sink is None:
        raise UsageError(f"`{name}` writes files to several sinks: {names}; choose one with --sink")
    raise UsageError(f"`{name}` writes no files to a sink `{sink}`; its sinks with files: {names}")


def _why_none(model: CompiledModel) -> str:
    table = next((output.table for output in model.outputs if output.table is not None), None)
    if table is not None:
        return f"table `{table}` does not exist yet, or its format tracks its own files"
    return f"the format of its sink is {', '.join(output.format for output in model.outputs)}"
