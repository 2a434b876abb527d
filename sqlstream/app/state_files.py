"""`sqlstream state files`: the files in a model's output that its batches have committed."""

from __future__ import annotations

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.running.stored_query import open_query
from sqlstream.errors import UsageError
from sqlstream.state.output_files import ModelFiles, OutputFiles


def state_files(request: ProjectRequest, name: str, version: int | None = None) -> ModelFiles:
    """Returns the files in the output of the terminal model `name`, in its newest version if none is asked for; nothing
    is written.

    Raises: FindingsError, also where nobody can tell which files are committed; UsageError for a name that is no
    terminal model's, a version that does not exist, and a model that writes no files.
    """
    with open_query(load_for_reading(request), request, name, version) as query:
        output = query.output
        if output is None:
            sink = query.model.output
            where = f"the format of its sink is {sink.format if sink else 'none'}"
            if sink is not None and sink.table is not None:
                where = f"table `{sink.table}` does not exist yet, or its format tracks its own files"
            raise UsageError(f"`{name}` has no files to list: {where}")
        found = query.files(output) if query.state.version else OutputFiles()
        return ModelFiles(name, query.state.version, query.storages.of(output)[1], found)
