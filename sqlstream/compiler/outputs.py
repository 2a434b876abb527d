"""Outputs of terminal models: the sink with the model's name and options filled in; and stored outputs as sources of
other queries.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, Output
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.declared import as_read
from sqlstream.compiler.graph import stored_id
from sqlstream.compiler.render.rendered import RenderOptions, TemplateReads, merge_reads
from sqlstream.compiler.render.yaml import SinkRenderer
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.columns import Schema
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.formats.formats import format_of
from sqlstream.project.secret_text import OptionValue, SecretText
from sqlstream.project.values import Project, Sink, SourceTable, StoredOutput
from sqlstream.project.wording import did_you_mean

_ANY_MODEL = ("model", "models/model.sql")
"""The name and the path of a placeholder for a model that will write to an unused sink."""

_MAY_BE_SET_ELSEWHERE = frozenset({"missing-env-var", "missing-var"})
"""Findings about variables that may be set in the target or environment that uses the sink."""


def resolve_outputs(
    sinks: Mapping[str, Sink], options: RenderOptions, model: ConfiguredModel
) -> tuple[tuple[Output, ...], TemplateReads | None, list[Finding]]:
    """Returns the outputs of the query of a model, none for a view, what the Jinja of their sinks has read if they are
    new, and the findings about them. `sinks` are the declared ones by name.
    """
    if not model.config.query_sinks:
        return (), None, []
    known = model.rendered.results.outputs
    if known is not None:  # the lines of a sink can have moved since
        return tuple(replace(output, location=sinks[output.sink].location) for output in known), None, []
    findings: list[Finding] = []
    filled: list[tuple[Output, TemplateReads]] = []
    for name in model.config.query_sinks:
        if name not in sinks:
            message, why = (
                f"`{name}` is not a declared sink",
                "a terminal model must name one of the sinks in sinks.yml",
            )
            place = model.locations.get("sink", model.file.location)
            findings.append(Finding("unknown-sink", message, why, did_you_mean(name, list(sinks)), place))
            continue
        try:
            filled.append(fill_in(sinks[name], options, model.output_name, model.file.path, model.config))
        except FindingsError as error:
            findings += error.findings
    reads = None if findings else merge_reads(reads for _, reads in filled)
    return tuple(output for output, _ in filled), reads, findings


def resolve_unused(
    project: Project, options: RenderOptions, used: Collection[str]
) -> tuple[tuple[Output, ...], list[Finding]]:
    """Returns the outputs of the sinks whose names are not in `used`, and the errors in their Jinja.

    They are filled in for a placeholder model. Sinks that need a model's `meta`, or variables that are not set here,
    are left out.
    """
    findings: list[Finding] = []
    outputs: list[Output] = []
    for sink in (sink for sink in project.sinks if sink.name not in used):
        try:
            outputs.append(fill_in(sink, options, *_ANY_MODEL, ModelConfig(tags=("tag",)))[0])
        except FindingsError as error:
            certain = [found for found in error.findings if found.code not in _MAY_BE_SET_ELSEWHERE]
            findings += [] if _needs_meta(sink) else certain
    return tuple(outputs), findings


def _needs_meta(sink: Sink) -> bool:
    values = (sink.path, sink.table, *sink.options.values())
    return any(value is not None and "meta" in str(value) for value in values)


def fill_in(
    sink: Sink, options: RenderOptions, model_name: str, model_path: str, config: ModelConfig
) -> tuple[Output, TemplateReads]:
    """Returns the output of a model in `sink`, and what its Jinja read. Raises: FindingsError."""
    model = {"name": model_name, "path": model_path, "tags": list(config.tags), "meta": dict(config.meta)}
    renderer = SinkRenderer(model, options)

    def render(key: str, value: object, *, secrets: bool = False) -> OptionValue:
        rendered = renderer(sink.located(key, value), secrets=secrets)
        return rendered if isinstance(rendered, SecretText) else _option_text(rendered)

    filled = {name: render(f"options.{name}", value, secrets=True) for name, value in sink.options.items()}
    filled |= {name: _option_text(value) for name, value in config.options.items()}
    output = Output(
        sink=sink.name,
        format=sink.format,
        path=None if sink.path is None else str(render("path", sink.path)),
        partition_by=config.partition_by or sink.partition_by,
        options=filled,
        location=sink.location,
        table=None if sink.table is None else str(render("table", sink.table)),
        python=sink.function,
        record=sink.record,
        files_per_batch=sink.files_per_batch,
    )
    return output, renderer.reads


def _option_text(value: object) -> str:
    """Returns an option's value as text for Spark, with true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def stored_tables(
    project: str, models: Mapping[str, CompiledModel], columns: Mapping[str, tuple[Column, ...] | None]
) -> dict[str, SourceTable]:
    """Returns the stored outputs of `models` by unique id, with the `columns` of their models.

    Their paths are those of the sinks: which version of an output exists is known only when a query starts.
    """
    return {
        stored_id(project, model.name): _table(model, model.output, columns.get(unique_id))
        for unique_id, model in models.items()
        if model.config.is_stored and model.output is not None
    }


def _table(model: CompiledModel, output: Output, columns: tuple[Column, ...] | None) -> SourceTable:
    location = model.location_of("materialized")
    return SourceTable.model_construct(
        source="",
        name=model.name,
        format=output.format,
        path=output.path,
        spark_schema=_schema(columns, location),
        mode="stream" if model.streams_when_stored else "batch",
        options=_reader_options(output),
        description=model.file.description,
        location=location,
        table=output.table,
        on_corrupt="fail" if format_of(output.format).is_parsed else None,
        stored=StoredOutput(model.name),
        previous_name=model.config.previous_name,
    )


def _schema(columns: tuple[Column, ...] | None, location: Location) -> Schema | None:
    """Returns the columns as a schema, None unless all types are known."""
    types = [None if column.type is None else as_read(column.type) for column in columns or ()]
    if not columns or None in types:
        return None
    pairs = zip(columns, types, strict=True)
    return Schema(location, ddl=", ".join(f"{column.in_sql} {kind}" for column, kind in pairs))


def _reader_options(output: Output) -> dict[str, OptionValue]:
    """Returns the options of the sink that its readers also need, such as the separator of CSV files."""
    shared = {name.lower() for name, option in format_of(output.format).options.items() if option.use == "anywhere"}
    return {name: value for name, value in output.options.items() if name.lower() in shared}


def stored_inputs(compiled: CompiledProject, model: CompiledModel) -> tuple[str, ...]:
    """Returns the names of the models whose stored outputs the query of `model` reads."""
    return tuple(table.name for table in compiled.tables_of(model.unique_id) if table.stored is not None)


def stages(compiled: CompiledProject, models: Sequence[CompiledModel]) -> list[list[CompiledModel]]:
    """Returns `models` in stages: each reads only stored outputs of models in earlier stages, or of no `models`."""
    numbers: dict[str, int] = {}
    chosen = {model.unique_id: model for model in models}
    for node in (node for node in compiled.graph.order if node in chosen):
        read = [numbers[name] for name in stored_inputs(compiled, chosen[node]) if name in numbers]
        numbers[chosen[node].name] = 1 + max(read, default=-1)
    found: list[list[CompiledModel]] = [[] for _ in range(1 + max(numbers.values(), default=-1))]
    for model in models:
        found[numbers[model.name]].append(model)
    return found
