"""Rows that no model selects, as models with their sinks: the metrics and alerts of runs, and the quarantines and late
rows of models. The query of a model writes each batch to its sinks, and then to its quarantine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.graph import model_id
from sqlstream.compiler.outputs import fill_in
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions
from sqlstream.compiler.rewrite.data_tests import QUARANTINE_COLUMNS
from sqlstream.compiler.sql.edits import EditedText
from sqlstream.errors import Finding, FindingsError
from sqlstream.figures import FIGURES
from sqlstream.location import Location
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.types.ddl import parse_type
from sqlstream.project.values import ModelFile, Project, Sink
from sqlstream.project.wording import did_you_mean

METRICS, ALERTS = "sqlstream_metrics", "sqlstream_alerts"
"""The names of the rows in sinks whose path or table contains `{{ model.name }}`."""


@dataclass(frozen=True)
class _Rows:
    """Rows with the name `name` that the configuration key `key` sends to a sink, named at `location`."""

    name: str
    key: str
    sink: str
    location: Location


def metrics_model(project: Project, options: RenderOptions) -> tuple[CompiledModel | None, list[Finding]]:
    """Returns the rows of metrics as a model with their sink, None without such rows or after an error."""
    declared = project.target.metrics
    if declared is None:
        return None, []
    return _rows_model(
        project, options, _Rows(METRICS, "metrics", declared.sink, project.target.location_of("metrics.sink"))
    )


def alerts_model(project: Project, options: RenderOptions) -> tuple[CompiledModel | None, list[Finding]]:
    """Returns the rows of alerts as a model with their sink, None without such rows or after an error."""
    channel = project.target.alerts.sink_channel
    if channel is None or channel.sink is None:
        return None, []
    return _rows_model(
        project,
        options,
        _Rows(ALERTS, "alerts", channel.sink, project.target.location_of(f"alerts.notify.{channel.name}")),
    )


def own_columns(model: CompiledModel) -> tuple[Column, ...]:
    """Returns the columns of rows of metrics or alerts as those of a model."""
    columns = ALERT_COLUMNS if model.name == ALERTS else METRICS_COLUMNS
    return tuple(Column(name, parse_type(type_)) for name, type_, _ in columns)


def quarantine_models(
    project: Project, options: RenderOptions, models: Mapping[str, CompiledModel]
) -> tuple[dict[str, CompiledModel], list[Finding]]:
    """Returns the quarantines of `models` by the unique id of their model, and the findings about their sinks."""
    names = {node: quarantine_name(model) for node, model in models.items() if model.quarantine_tests}
    return _rows_in_quarantine(project, options, models, names)


def late_row_models(
    project: Project, options: RenderOptions, models: Mapping[str, CompiledModel]
) -> tuple[dict[str, CompiledModel], list[Finding]]:
    """Returns the late rows of `models` by the unique id of their model, and the findings about their sinks."""
    names = {node: f"{model.query_id}__late" for node, model in models.items() if model.keeps_late_rows}
    return _rows_in_quarantine(project, options, models, names)


def _rows_in_quarantine(
    project: Project, options: RenderOptions, models: Mapping[str, CompiledModel], names: Mapping[str, str]
) -> tuple[dict[str, CompiledModel], list[Finding]]:
    """Returns the rows with `names`, by the unique ids of their models, in the quarantine sinks of these models."""
    found: dict[str, CompiledModel] = {}
    findings: list[Finding] = []
    for unique_id, name in names.items():
        model = models[unique_id]
        sink = model.config.quarantine_sink
        if sink is None or model.output is None:
            continue
        rows = _Rows(name, "quarantine_sink", sink, model.location_of("quarantine_sink"))
        made, wrong = _rows_model(project, options, rows)
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
        config_locations={"sink": location},
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


METRICS_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("time", "timestamp", "When the batch started."),
    ("date", "date", "Its day in UTC, for `partition_by`."),
    ("project", "string", "The project."),
    ("target", "string", "The target."),
    ("model", "string", "The model of the query."),
    ("invocation_id", "string", "The run, as in events.jsonl."),
    ("batch_id", "bigint", "The number of the batch in the checkpoint."),
    *((figure.name, figure.type, figure.text) for figure in FIGURES if figure.in_sink),
    ("sources", "string", "JSON: name, rows_in and offsets of each reader, and its lag for Kafka."),
)
"""The columns of the rows: name, Spark's type, description."""

ALERT_COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("time", "timestamp", "When the alert changed."),
    ("date", "date", "Its day in UTC, for `partition_by`."),
    ("project", "string", "The project."),
    ("target", "string", "The target."),
    ("model", "string", "The model of the query."),
    ("alert", "string", "The kind, such as `failed`."),
    ("state", "string", "`raised`, `repeated` or `resolved`."),
    ("severity", "string", "`critical`, `error` or `warning`."),
    ("message", "string", "The sentence."),
    ("value", "double", "What was measured: seconds, or a count."),
    ("threshold", "double", "The limit of the rule."),
    ("since", "timestamp", "When the alert was raised."),
    ("alert_id", "string", "The same in all rows of an alert, from raised to resolved."),
    ("message_id", "string", "The same if a row is written twice."),
    ("invocation_id", "string", "The run, as in events.jsonl."),
)
"""The columns of the rows of alerts: name, Spark's type, description."""
