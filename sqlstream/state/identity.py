"""The identity of a query: everything in a project that decides whether a checkpoint belongs to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sqlstream.compiler.cache.digest import digest
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.rewrite.deduplicate import key_columns
from sqlstream.compiler.sql.sql_text import fingerprint, python_fingerprint
from sqlstream.project.files.python_files import PythonFunction
from sqlstream.state.contents import contents_of, schemas_of
from sqlstream.state.ledger import OutputColumn, QueryIdentity, SinkUse, SourceUse
from sqlstream.state.settings import declared_settings


def identity_of(
    compiled: CompiledProject,
    model: CompiledModel,
    uses: tuple[SourceUse, ...],
    columns: tuple[OutputColumn, ...] | None,
    *,
    stateful: bool,
    settings: Mapping[str, str],
) -> QueryIdentity:
    """Returns the ledger's description of the query of `model`, with readers `uses`; `model` can be a view."""
    parts = _upstream_models(compiled, model)
    return QueryIdentity(
        query=model.query_id,
        model=model.name,
        models={part.name: part.sql for part in parts},
        fingerprints={part.name: _fingerprint(part) for part in parts}
        | _called_functions(compiled.project.functions, parts),
        sources=uses,
        sink_format=model.output.format if model.output else "",
        sink_path=(model.output.place or model.output.database_table) if model.output else None,
        output_mode=model.config.output_mode,
        stateful=stateful,
        settings=settings,
        batch=not model.streaming,
        deduplicated={part.name: key_columns(part.config.deduplicate) for part in parts if part.config.deduplicate},
        columns=columns,
        partition_by=model.output.partition_by if model.output else (),
        also=tuple(
            SinkUse(
                output.sink, output.format, output.place or output.database_table, output.partition_by, output.address
            )
            for output in model.also
        ),
        separate=model.config.separate_sinks,
        files={part.name: digest(part.file.text) for part in parts},
        inputs={part.name: part.inputs for part in parts},
        contents=dict(contents_of(compiled, model, uses)),
        schemas=dict(schemas_of(compiled, model)),
        sink_address=model.output.address if model.output else None,
        unique_key=model.config.unique_key,
        declared=declared_settings(compiled.project.target.spark),
    )


def _upstream_models(compiled: CompiledProject, model: CompiledModel) -> list[CompiledModel]:
    """Returns all models upstream of `model` and `model` itself, parents first."""
    upstream = compiled.upstream(model.unique_id) | {model.unique_id}
    return [compiled.models[node] for node in compiled.graph.order if node in upstream and node in compiled.models]


def _fingerprint(model: CompiledModel) -> str:
    if model.file.is_python:
        return python_fingerprint(model.file.text, model.inputs.variables)
    return fingerprint(model.sql)


def _called_functions(functions: Sequence[PythonFunction], parts: Sequence[CompiledModel]) -> dict[str, str]:
    """Returns the digests of the project's functions whose names occur in the SQL of `parts`, by reference."""
    words = {word.lower() for part in parts for word in _WORD.findall(part.sql)} if functions else set()
    return {function.reference: function.digest for function in functions if function.name.lower() in words}


_WORD = re.compile(r"\w+")
