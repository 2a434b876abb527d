"""What a terminal model writes: its sink, with the model's own name and options filled in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from sqlstream.compiler.cache.digest import declared, digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import Meanings, values_of
from sqlstream.compiler.compiled import Output
from sqlstream.compiler.render.values import Reads, RenderOptions, merge_reads
from sqlstream.compiler.render.yaml import SinkRenderer
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location
from sqlstream.project.configuration.config import ModelConfig
from sqlstream.project.nearest import did_you_mean
from sqlstream.project.secrets import OptionValue, SecretText
from sqlstream.project.values import Located, ModelFile, Project, Sink


def resolve_output(
    project: Project,
    options: RenderOptions,
    file: ModelFile,
    config: ModelConfig,
    places: Mapping[str, Location],
    memory: Memory,
) -> tuple[Output | None, list[Finding]]:
    """Returns the output of a model, None for a view, and what is wrong with it."""
    if config.sink is None:
        return None, []
    found = [sink for sink in project.sinks if sink.name == config.sink]
    if not found:
        return None, [_unknown_sink(project, config.sink, places.get("sink", file.location))]
    try:
        return _remembered(found[0], options, file, config, memory), []
    except FindingsError as error:
        return None, list(error.findings)


def resolve_unused(
    project: Project, options: RenderOptions, used: Collection[str], memory: Memory
) -> tuple[tuple[Output, ...], list[Finding]]:
    """Returns the outputs of the sinks that are not among the names `used`, filled in for some model, and what is wrong
    with their Jinja. A sink is left out if its Jinja needs a model's own `meta`, or variables that are not set here.
    """
    sinks = [sink for sink in project.sinks if sink.name not in used]
    key = digest(*map(declared, sinks), options.target.name)
    kept: tuple[tuple[Output, ...], Reads, Meanings] | None = memory.recall("output", "", key)
    if kept is not None and values_of(kept[1], options) == kept[2]:
        places = {sink.name: sink.location for sink in sinks}
        return tuple(replace(output, location=places[output.sink]) for output in kept[0]), []
    findings: list[Finding] = []
    filled: list[tuple[Output, Reads]] = []
    for sink in sinks:
        try:
            filled.append(_fill_in(sink, options, _ANY_MODEL, ModelConfig(tags=("tag",))))
        except FindingsError as error:
            findings += [found for found in error.findings if found.code not in _ELSEWHERE and not _needs_meta(sink)]
    outputs, reads = tuple(output for output, _ in filled), merge_reads(tuple(reads for _, reads in filled))
    if not findings:
        memory.note("output", "", key, (outputs, reads, values_of(reads, options)))
    return outputs, findings


_ELSEWHERE = frozenset({"missing-env-var", "missing-var"})
"""What a sink may lack in one target or environment, and have in that in which models write to it."""

_ANY_MODEL = ModelFile("model", "models/model.sql", "", (), "", (), ())
"""Stands for the models that may write to a sink one day."""


def _needs_meta(sink: Sink) -> bool:
    values = (sink.path, sink.table, *sink.options.values())
    return any(value is not None and "meta" in str(value.value) for value in values)


def _unknown_sink(project: Project, name: str, location: Location) -> Finding:
    return Finding(
        "unknown-sink",
        f"`{name}` is not a declared sink",
        "a terminal model must name one of the sinks in sinks.yml",
        did_you_mean(name, [sink.name for sink in project.sinks]),
        location,
    )


def _remembered(sink: Sink, options: RenderOptions, file: ModelFile, config: ModelConfig, memory: Memory) -> Output:
    """The output, filled in again only where something that it is made from has changed."""
    key = digest(declared(sink), file.name, file.path, config.plain(), options.target.name)
    kept: tuple[Output, Reads, Meanings] | None = memory.recall("output", file.path, key)
    if kept is not None and values_of(kept[1], options) == kept[2]:
        return replace(kept[0], location=sink.location)
    output, reads = _fill_in(sink, options, file, config)
    memory.note("output", file.path, key, (output, reads, values_of(reads, options)))
    return output


def _fill_in(sink: Sink, options: RenderOptions, file: ModelFile, config: ModelConfig) -> tuple[Output, Reads]:
    # a renamed query keeps its checkpoint, and with it the folder that this has written to so far
    name = config.previous_name or file.name
    model = {"name": name, "path": file.path, "tags": list(config.tags), "meta": dict(config.meta)}
    renderer = SinkRenderer(model, options)

    def render(value: Located, *, secrets: bool) -> OptionValue:
        rendered = renderer(value, secrets=secrets)
        return rendered if isinstance(rendered, SecretText) else option_text(rendered)

    filled = {name: render(value, secrets=True) for name, value in sink.options.items()}
    filled |= {name: option_text(value) for name, value in config.options.items()}
    path = None if sink.path is None else str(render(sink.path, secrets=False))
    output = Output(
        sink=sink.name,
        format=sink.format,
        path=path,
        partition_by=config.partition_by or sink.partition_by,
        options=filled,
        location=sink.location,
        table=None if sink.table is None else str(render(sink.table, secrets=False)),
        python=sink.python,
    )
    return output, renderer.reads


def option_text(value: object) -> str:
    """Returns an option's value as Spark takes it: text, with true and false in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
