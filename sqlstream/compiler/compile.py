"""The whole of compilation: a `Project` to a `CompiledProject`, all findings of a stage together."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from sqlstream.compiler.ahead import (
    MODELS_WORTH_A_RENDERER,
    Workers,
    closure_of,
    share,
    share_graph,
    work_ahead,
    working,
)
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer, Known
from sqlstream.compiler.compiled import CompiledModel, CompiledProject, CompileResult, Output
from sqlstream.compiler.flow.analyse import analyse_models
from sqlstream.compiler.graph import Graph, Names, build_graph, project_names, resolve_reference
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.node_ids import model_id, source_id
from sqlstream.compiler.outputs import resolve_output, resolve_unused
from sqlstream.compiler.render.values import RenderOptions, inputs_of
from sqlstream.compiler.rewrite.deduplicate import note_offset, with_note
from sqlstream.compiler.rewrite.sql import Inputs, Rewritten, python_text, rewrite_model
from sqlstream.compiler.rules import check_models, check_use
from sqlstream.compiler.rules.declared_columns import declared_columns
from sqlstream.compiler.rules.sinks.columns import sink_columns
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.spark_parser import SparkParser
from sqlstream.compiler.sql.bare_names import spellings_in
from sqlstream.compiler.unread import unread_findings
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.configuration.config import ModelConfig, merge_configs
from sqlstream.project.values import ModelFile, Project


@dataclass(frozen=True)
class Configured:
    """A rendered model with its effective configuration and where each key of it was said."""

    rendered: Known
    config: ModelConfig
    places: Mapping[str, Location]


def compile_project(
    project: Project,
    options: RenderOptions,
    memory: Memory | None = None,
    workers: Workers | None = None,
    parser: SparkParser | None = None,
) -> CompileResult:
    """Returns the compiled project, or every finding of the first stage that has errors.

    What `memory` knows from an earlier compilation is not done again, and what is done is noted there. `workers` do
    what there is to do at the same time where that pays. `parser` is asked about SQL that the compiler cannot read.
    """
    memory = memory or Memory()
    renderer = CachedRenderer(project, options, memory)
    result = _compile(project, options, renderer, memory, workers, parser)
    renderer.remember_places()
    return result


def _compile(
    project: Project,
    options: RenderOptions,
    renderer: CachedRenderer,
    memory: Memory,
    workers: Workers | None,
    parser: SparkParser | None,
) -> CompileResult:
    unknown = _render_ahead(project, options, renderer, memory, workers)
    configured, findings = _render_all(project, renderer)
    if _has_errors(findings):
        return CompileResult(None, tuple(findings))
    enabled = {model.rendered.model.file.name: model for model in configured if model.config.enabled}
    names = project_names(project, enabled)
    parents, problems = _resolve_all(project, enabled, names)
    findings += problems
    if _has_errors(problems):
        return CompileResult(None, tuple(findings))
    rendered = {model_id(project.name, name): model.rendered.model for name, model in enabled.items()}
    graph = build_graph(names, rendered, parents)
    if isinstance(graph, Finding):
        return CompileResult(None, (*findings, graph))
    spellings = spellings_in(project, names, options.env)
    linked = _Linked(project, enabled, graph, names, Inputs(spellings, _streaming_nodes(project, graph)))
    to_do = closure_of(graph.children, (node for node in unknown if node in rendered))
    parts = share_graph(graph.parents, [node for node in graph.order if node in to_do], workers)
    with working(memory, workers, parts, len(rendered) - len(to_do), partial(_analyse_part, linked, options)):
        return _judge(linked, options, renderer, memory, findings, parser)


ALWAYS_SURE = frozenset({"jinja-syntax", "unknown-key"})
"""Codes of findings about templates that do not depend on anything else in the project."""

SURE = ALWAYS_SURE | {"invalid-value", "missing-env-var", "missing-var"}
"""Codes of those that do not depend on YAML files beside project.yml."""


def template_findings(project: Project, options: RenderOptions, *, knows_variables: bool) -> tuple[Finding, ...]:
    """Returns what is certainly wrong in the templates of a project of which a part could not be read."""
    renderer = CachedRenderer(project, replace(options, log=_ignore), Memory())
    sure = SURE if knows_variables else ALWAYS_SURE
    return tuple(finding for finding in _render_all(project, renderer)[1] if finding.code in sure)


def _judge(
    linked: _Linked,
    options: RenderOptions,
    renderer: CachedRenderer,
    memory: Memory,
    findings: list[Finding],
    parser: SparkParser | None,
) -> CompileResult:
    """What comes of the models when all that they say is known; `findings` are those so far."""
    project = linked.project
    compiled, problems, broken = _finish_all(linked, options, renderer, memory)
    used = {model.output.sink for model in compiled.models.values() if model.output is not None}
    unused, more = resolve_unused(project, options, used, memory)
    compiled = replace(compiled, unused_outputs=unused)
    findings += [*problems, *more, *check_models(compiled)]
    # a watermark that could not be placed would be missed again in every query over the model
    left_out = closure_of(linked.graph.children, broken)
    followed = {node: model for node, model in compiled.models.items() if node not in left_out}
    analyses = analyse_models(project, followed, memory)
    follows_rules = is_judged(project.target)
    complete = follows_rules and not broken
    if follows_rules:
        compiled = replace(compiled, columns={node: analysis.columns for node, analysis in analyses.items()})
        findings += streaming_rules(replace(compiled, models=followed), analyses, memory)
        findings += [*sink_columns(compiled), *declared_columns(compiled)]
    faulty = {node for node, analysis in analyses.items() if follows_rules and analysis.problems}
    findings += unread_findings(compiled, analyses, faulty, parser, memory)
    if _has_errors(findings):
        return CompileResult(None, tuple(findings), compiled)
    return CompileResult(compiled, (*findings, *check_use(compiled)), compiled, complete)


def _render_ahead(
    project: Project, options: RenderOptions, renderer: CachedRenderer, memory: Memory, workers: Workers | None
) -> frozenset[str]:
    """Returns the ids of the models that are not remembered, which the workers render where they are many."""
    if workers is None or renderer.macro_findings:
        return frozenset()
    missing = renderer.missing(project.models)
    parts = share([file.path for file in missing], workers, MODELS_WORTH_A_RENDERER)
    work_ahead(memory, workers, parts, partial(_render_part, project, options))
    return frozenset(model_id(project.name, file.name) for file in missing)


def _render_part(project: Project, options: RenderOptions, paths: Collection[str], memory: Memory) -> None:
    """Renders some models ahead, silently: what a template logs is logged when its model is compiled."""
    renderer = CachedRenderer(project, replace(options, log=_ignore), memory)
    for file in project.models:
        with suppress(FindingsError):
            if file.path in paths:
                renderer.render(file)


def _ignore(message: str, info: bool) -> None:
    del message, info


def _analyse_part(linked: _Linked, options: RenderOptions, nodes: Collection[str], memory: Memory) -> None:
    """Rewrites and analyses some models, among which are all that they read and that is not remembered."""
    project = linked.project
    renderer = CachedRenderer(project, replace(options, log=_ignore), memory)
    needed = closure_of(linked.graph.parents, nodes)
    enabled = {name: model for name, model in linked.enabled.items() if model_id(project.name, name) in needed}
    compiled, _, broken = _finish_all(replace(linked, enabled=enabled), options, renderer, memory)
    if not broken:
        analyses = analyse_models(project, compiled.models, memory)
        if is_judged(project.target):
            streaming_rules(compiled, analyses, memory)
    renderer.remember_places()


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.is_error for finding in findings)


def _render_all(project: Project, renderer: CachedRenderer) -> tuple[list[Configured], list[Finding]]:
    findings: list[Finding] = list(renderer.macro_findings)
    configured: list[Configured] = []
    if findings:
        return configured, findings
    for file in project.models:
        try:
            rendered = renderer.render(file)
        except FindingsError as error:
            findings += error.findings
            continue
        findings += rendered.model.findings
        merged = merge_configs([*file.configs, rendered.model.config])
        findings += merged.findings
        if merged.config is not None:
            configured.append(Configured(rendered, merged.config, merged.places))
    return configured, findings


def _resolve_all(
    project: Project, enabled: Mapping[str, Configured], names: Names
) -> tuple[dict[str, list[str]], list[Finding]]:
    findings: list[Finding] = []
    parents: dict[str, list[str]] = {}
    for name, model in enabled.items():
        found = [resolve_reference(reference, names) for reference in model.rendered.model.references]
        findings += [item for item in found if isinstance(item, Finding)]
        parents[model_id(project.name, name)] = [item for item in found if isinstance(item, str)]
    return parents, findings


@dataclass(frozen=True)
class _Linked:
    """The enabled models by name, with their graph: all that is known before any SQL is looked into."""

    project: Project
    enabled: Mapping[str, Configured]
    graph: Graph
    names: Names
    inputs: Inputs


def _finish_all(
    linked: _Linked, options: RenderOptions, renderer: CachedRenderer, memory: Memory
) -> tuple[CompiledProject, list[Finding], frozenset[str]]:
    """The compiled models, what is wrong with them, and the ids of those whose hints or sink are wrong."""
    project, graph = linked.project, linked.graph
    rewritten = _rewrite_all(linked, renderer, memory)
    findings: list[Finding] = []
    models: dict[str, CompiledModel] = {}
    broken: set[str] = set()
    for model in linked.enabled.values():
        unique_id = model_id(project.name, model.rendered.model.file.name)
        output, problems = resolve_output(
            project, options, model.rendered.model.file, model.config, model.places, memory
        )
        problems = [*rewritten[unique_id].findings, *problems]
        findings += problems
        broken |= {unique_id} if _has_errors(problems) else set()
        models[unique_id] = _compiled_model(
            project, options, model, rewritten[unique_id], output, streaming=unique_id in linked.inputs.streaming
        )

    def locate(unique_id: str, offset: int) -> Place:
        if models[unique_id].config.deduplicate and offset >= note_offset(models[unique_id].sql):
            return Place(models[unique_id].place_of("deduplicate"))
        rendered = linked.enabled[models[unique_id].name].rendered
        return renderer.locate(rendered, rewritten[unique_id].text.original_offset(offset))

    ordered = {node: models[node] for node in graph.order if node in models}
    return CompiledProject(project, graph, ordered, locate), findings, frozenset(broken)


def _rewrite_all(linked: _Linked, renderer: CachedRenderer, memory: Memory) -> dict[str, Rewritten]:
    graph, names = linked.graph, linked.names
    rewritten = {}
    for name, model in linked.enabled.items():
        unique_id = model_id(linked.project.name, name)
        if model.rendered.model.file.is_python:
            nodes = [resolve_reference(reference, names) for reference in model.rendered.model.references]
            rewritten[unique_id] = python_text(model.rendered, [node for node in nodes if isinstance(node, str)])
            continue
        rewritten[unique_id] = rewrite_model(model.rendered, renderer, graph.parents[unique_id], linked.inputs, memory)
    return rewritten


def _compiled_model(
    project: Project,
    options: RenderOptions,
    model: Configured,
    rewritten: Rewritten,
    output: Output | None,
    *,
    streaming: bool,
) -> CompiledModel:
    return CompiledModel(
        unique_id=model_id(project.name, model.rendered.model.file.name),
        file=model.rendered.model.file,
        config=model.config,
        config_places=model.places,
        sql=with_note(rewritten.text.text, model.config.deduplicate, python=model.rendered.model.file.is_python),
        reads=rewritten.reads,
        streaming=streaming,
        output=output,
        compiled_path=compiled_path(project, model.rendered.model.file),
        inputs=inputs_of(model.rendered.model.reads, options),
    )


def _streaming_nodes(project: Project, graph: Graph) -> frozenset[str]:
    """The nodes with a stream among their ancestors, or that are one."""
    streams = {source_id(project.name, table) for table in project.sources if table.mode == "stream"}
    for node in graph.order:
        if any(parent in streams for parent in graph.parents[node]):
            streams.add(node)
    return frozenset(streams)


def compiled_path(project: Project, file: ModelFile) -> str:
    """Returns where the compiled SQL of `file` is written below target/, as dbt does it."""
    return f"compiled/{project.name}/{file.path}"
