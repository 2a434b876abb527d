"""`sqlstream path`: where readers find the rows of the current version of a query."""

from __future__ import annotations

import json
from collections.abc import Mapping

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import readable_storage, unreadable_storage
from sqlstream.app.stored.stored_query import open_query, terminal_model
from sqlstream.app.versions.publications import QueryNames, names_of
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.wording import quoted_list
from sqlstream.spark.secrets import Secrets
from sqlstream.state.checkpoints import read_version, read_versions_file
from sqlstream.state.layout import query_root


def current_outputs(request: ProjectRequest, name: str) -> Mapping[str, str]:
    """Returns the paths, URIs or tables with the rows of the current version of a terminal model, by the names of its
    sinks. A plain name that shows this version stands for what the query writes to. Starts Spark only if nothing else
    can read the storage.

    Raises: FindingsError; UsageError if `name` is not a terminal model, or its query has not started yet.
    """
    loaded = load_for_reading(request)
    model, storage = terminal_model(loaded, name), readable_storage(loaded)
    root = "" if storage is None else query_root(storage.base, model.query_id, model.config.checkpoint)
    if storage is None or not storage.can_read(root):
        with open_query(loaded, request, name) as query:
            return _outputs(names_of(query, request))
    try:
        files, folder = storage.of(root)
        return _outputs(QueryNames(loaded, model, files, folder, storage.of, Secrets(request.env), _no_spark))
    except OSError as error:
        raise FindingsError([unreadable_storage(loaded, error)]) from error


def _no_spark() -> SparkSession:
    raise NotImplementedError("the paths of outputs are known without Spark")


def _outputs(names: QueryNames) -> Mapping[str, str]:
    parts = read_versions_file(names.storage_of, names.root)
    state = read_version(names.storage_of, names.root, parts.current) if parts.current else None
    if state is None or state.ledger is None:
        raise UsageError(f"the query of `{names.model.name}` has not started yet, so it has no output")
    return names.outputs(parts, state)


def one_output(outputs: Mapping[str, str], name: str, sink: str | None) -> str:
    """Returns the output in `sink`, or the only one. Raises: UsageError if there is none, or several."""
    if not outputs:
        raise UsageError(f"the sinks of `{name}` have no path and no table")
    if sink is None and len(outputs) > 1:
        raise UsageError(f"`{name}` has several sinks; choose one with --sink: {quoted_list(tuple(outputs))}")
    if sink is not None and sink not in outputs:
        raise UsageError(f"`{name}` has no output in sink `{sink}`; it has {quoted_list(tuple(outputs))}")
    return outputs[sink] if sink is not None else next(iter(outputs.values()))


def outputs_json(model: str, outputs: Mapping[str, str]) -> str:
    """Returns the outputs of a model as one JSON object."""
    return json.dumps({"model": model, "outputs": [{"sink": sink, "path": path} for sink, path in outputs.items()]})
