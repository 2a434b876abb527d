"""The quarantines of models: the rows that violate a data test with `on_violation: quarantine`, as models with their
sinks. The query of a model writes both, each batch to its sinks and then to the quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.metrics import NamedRows, rows_model
from sqlstream.compiler.render.rendered import RenderOptions
from sqlstream.compiler.rewrite.data_tests import QUARANTINE_COLUMNS
from sqlstream.errors import Finding
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.values import Project


def quarantine_models(
    project: Project, options: RenderOptions, models: Mapping[str, CompiledModel]
) -> tuple[dict[str, CompiledModel], list[Finding]]:
    """Returns the quarantines of `models` by the unique id of their model, and the findings about their sinks."""
    found: dict[str, CompiledModel] = {}
    findings: list[Finding] = []
    for unique_id, model in models.items():
        sink = model.config.quarantine_sink
        if sink is None or model.output is None or not model.quarantining:
            continue
        rows = NamedRows(quarantine_name(model), "quarantine_sink", sink, model.location_of("quarantine_sink"))
        made, wrong = rows_model(project, options, rows)
        findings += wrong
        if made is not None:
            found[unique_id] = made
    return found, findings


def quarantine_name(model: CompiledModel) -> str:
    """Returns the name of the quarantine in sinks whose path or table contains `{{ model.name }}`."""
    return f"{model.query_id}__quarantine"


def quarantine_columns(columns: tuple[Column, ...] | None) -> tuple[Column, ...] | None:
    """Returns the columns of the quarantine of a model with `columns`, None if they are unknown."""
    if columns is None:
        return None
    return (*columns, *(Column(name, parse_type(type_)) for name, type_ in QUARANTINE_COLUMNS))
