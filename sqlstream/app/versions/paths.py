"""`sqlstream path`: where readers find the rows of the current version of a query."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pyspark.sql import SparkSession

from sqlstream.app.loading.load import load_for_reading
from sqlstream.app.request import ProjectRequest
from sqlstream.app.session.target_storage import OnlySparkReadsError, readable_storage, unreadable_storage
from sqlstream.app.stored.stored_query import open_query, terminal_model
from sqlstream.app.versions.publications import QueryNames, names_of
from sqlstream.errors import FindingsError, UsageError
from sqlstream.project.wording import quoted_list
from sqlstream.spark.secrets import Secrets
from sqlstream.state.checkpoints import read_version, read_versions_file

Outputs = Sequence[tuple[str, str]]
"""The name of each sink, and the path, URI or table with the rows in it."""


def current_outputs(request: ProjectRequest, name: str) -> Outputs:
    """Returns where readers find the rows of the current version of a terminal model: under the plain name of a sink if
    that shows this version. Starts Spark only if nothing else can read the storage or an output.

    Raises: FindingsError; UsageError if `name` is not a terminal model, or its query has not started yet.
    """
    loaded = load_for_reading(request)
    model, storage = terminal_model(loaded, name), readable_storage(loaded)
    root = "" if storage is None else storage.root_of(model)
    if storage is not None and storage.can_read(root):
        try:
            files, _ = storage.of(root)
            return _outputs(QueryNames(loaded, model, files, root, storage.of, Secrets(request.env), _no_spark))
        except OnlySparkReadsError:
            pass  # an output is elsewhere
        except OSError as error:
            raise FindingsError([unreadable_storage(loaded, error)]) from error
    with open_query(loaded, request, name) as query:
        return _outputs(names_of(query, request))


def _no_spark() -> SparkSession:
    raise NotImplementedError("the paths of outputs are known without Spark")


def _outputs(names: QueryNames) -> Outputs:
    parts = read_versions_file(names.storage_of, names.root)
    state = read_version(names.storage_of, names.root, parts.current) if parts.current else None
    if state is None or state.ledger is None:
        raise UsageError(f"the query of `{names.model.name}` has not started yet, so it has no output")
    return names.outputs(parts, state)


def chosen_outputs(outputs: Outputs, name: str, sink: str | None) -> Outputs:
    """Returns the output in `sink`, or all. Raises: UsageError if there is none."""
    if not outputs:
        raise UsageError(f"the sinks of `{name}` have no path and no table")
    chosen = [each for each in outputs if sink in (None, each[0])]
    if not chosen:
        raise UsageError(f"`{name}` has no output in sink `{sink}`; it has {_sinks(outputs)}")
    return chosen


def path_text(outputs: Outputs, name: str) -> str:
    """Returns the only path. Raises: UsageError if there are several."""
    if len(outputs) > 1:
        raise UsageError(f"`{name}` has several sinks; choose one with --sink: {_sinks(outputs)}")
    return outputs[0][1]


def _sinks(outputs: Outputs) -> str:
    return quoted_list([sink for sink, _ in outputs])


def outputs_json(model: str, outputs: Outputs) -> str:
    """Returns the outputs of a model as one JSON object."""
    return json.dumps({"model": model, "outputs": [{"sink": sink, "path": path} for sink, path in outputs]})
