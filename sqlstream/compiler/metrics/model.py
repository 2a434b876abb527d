"""The queries that no model has: the rows of metrics and of alerts that runs write to sinks."""

from __future__ import annotations

from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.metrics.columns import ALERT_COLUMNS, METRICS_COLUMNS
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.outputs import fill_in
from sqlstream.compiler.render.values import RenderedModel, RenderOptions
from sqlstream.compiler.sql.edits import EditedText
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.alerts import ALERTS
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.metrics import METRICS
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.types.parser import parse_type
from sqlstream.project.values import ModelFile, Project, Sink


@dataclass(frozen=True)
class _Rows:
    """Rows with the name `name` that the key `key` of project.yml sends to a sink, named at `location`."""

    name: str
    key: str
    sink: str
    location: Location


def metrics_model(project: Project, options: RenderOptions) -> tuple[CompiledModel | None, list[Finding]]:
    """Returns the rows of metrics as a model with their sink, None without such rows or after an error."""
    declared = project.target.metrics
    if declared is None:
        return None, []
    return _rows_model(project, options, _Rows(METRICS, "metrics", declared.sink, declared.location))


def alerts_model(project: Project, options: RenderOptions) -> tuple[CompiledModel | None, list[Finding]]:
    """Returns the rows of alerts as a model with their sink, None without such rows or after an error."""
    channel = project.target.alerts.sink
    if channel is None or channel.sink is None:
        return None, []
    return _rows_model(project, options, _Rows(ALERTS, "alerts", channel.sink, channel.location))


def own_columns(model: CompiledModel) -> tuple[Column, ...]:
    """Returns the columns of rows of metrics or alerts as those of a model."""
    columns = ALERT_COLUMNS if model.name == ALERTS else METRICS_COLUMNS
    return tuple(Column(name, parse_type(type_)) for name, type_, _ in columns)


def _rows_model(project: Project, options: RenderOptions, rows: _Rows) -> tuple[CompiledModel | None, list[Finding]]:
    sink = next((sink for sink in project.sinks if sink.name == rows.sink), None)
    if sink is None:
        return None, [_unknown_sink(rows, project)]
    if any(model.name == rows.name for model in project.models):
        return None, [_taken_name(rows)]
    try:
        return _model(project, options, rows, sink), []
    except FindingsError as error:
        return None, list(error.findings)


def _model(project: Project, options: RenderOptions, rows: _Rows, sink: Sink) -> CompiledModel:
    config = ModelConfig(sink=sink.name)
    location = rows.location
    file = ModelFile(rows.name, location.path, "", (), "", (), (), declared_at=location)
    output, _ = fill_in(sink, options, rows.name, file.path, config)
    return CompiledModel(
        unique_id=model_id(project.name, rows.name),
        rendered=RenderedModel(file, "", (), {}),
        rewritten=EditedText("", "", ()),
        config=config,
        config_places={"sink": location},
        sql="",
        reads=(),
        streaming=True,
        output=output,
        compiled_path="",
    )


def _unknown_sink(rows: _Rows, project: Project) -> Finding:
    return Finding(
        "unknown-sink",
        f"`{rows.sink}` is not a declared sink",
        f"`{rows.key}` must name one of the sinks in sinks.yml",
        did_you_mean(rows.sink, [sink.name for sink in project.sinks]),
        rows.location,
    )


def _taken_name(rows: _Rows) -> Finding:
    return Finding(
        "duplicate-name",
        f"the project has a model `{rows.name}`",
        f"`{rows.key}` writes its rows under this name, for example to a folder or a table `{rows.name}`",
        "rename the model",
        rows.location,
    )
