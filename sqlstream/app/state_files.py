"""`sqlstream state files`: lists the committed files in a model's output."""

from __future__ import annotations

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.stored_query import open_query
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.errors import UsageError
from sqlstream.state.output_files import ModelFiles, OutputFiles


def state_files(request: ProjectRequest, name: str, version: int | None = None) -> ModelFiles:
    """Returns the files in the output of the terminal model `name`, by default in its newest version. Writes nothing.

    Raises: FindingsError, also if it is unknown which files are committed; UsageError if `name` is not a terminal
    model or writes no files, or the version does not exist.
    """
    with open_query(load_for_reading(request), request, name, version) as query:
        output = query.output
        if output is None:
            raise UsageError(f"`{name}` has no files to list: {_why_none(query.model)}")
        found = query.files(output) if query.state.version else OutputFiles()
        return ModelFiles(name, query.state.version, query.storages.of(output)[1], found)


def _why_none(model: CompiledModel) -> str:
    sink = model.output
    if sink is not None and sink.table is not None:
        return f"table `{sink.table}` does not exist yet, or its format tracks its own files"
    return f"the format of its sink is {sink.format if sink else 'none'}"
