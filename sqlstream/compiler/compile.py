"""The whole of compilation: a `Project` to a `CompiledProject`, all findings of a stage together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.compiled import CompiledModel, CompiledProject, CompileResult
from sqlstream.compiler.graph import Graph, Names, build_graph, project_names, resolve_reference
from sqlstream.compiler.outputs import resolve_output
from sqlstream.compiler.render.model import ModelRenderer
from sqlstream.compiler.render.values import RenderedModel, RenderOptions
from sqlstream.compiler.rewrite import Rewritten, rewrite_model
from sqlstream.compiler.rules import check_models
from sqlstream.errors import Finding, FindingsError
from sqlstream.location import Location, Place
from sqlstream.project.config import ModelConfig, merge_configs
from sqlstream.project.values import ModelFile, Project


@dataclass(frozen=True)
class Configured:
    """A rendered model with its effective configuration and where each key of it was said."""

    rendered: RenderedModel
    config: ModelConfig
    places: Mapping[str, Location]


def compile_project(project: Project, options: RenderOptions) -> CompileResult:
    """Returns the compiled project, or every finding of the first stage that has errors."""
    renderer = ModelRenderer(project.macros, options)
    configured, findings = _render_all(project, renderer)
    if _has_errors(findings):
        return CompileResult(None, tuple(findings))
    enabled = {model.rendered.file.name: model for model in configured if model.config.enabled}
    names = project_names(project, enabled)
    parents, problems = _resolve_all(project, enabled, names)
    findings += problems
    if _has_errors(problems):
        return CompileResult(None, tuple(findings))
    rendered = {f"model.{project.name}.{name}": model.rendered for name, model in enabled.items()}
    graph = build_graph(names, rendered, parents)
    if isinstance(graph, Finding):
        return CompileResult(None, (*findings, graph))
    compiled, problems = _finish_all(project, options, renderer, enabled, graph, names)
    findings += problems + check_models(compiled)
    return CompileResult(None if _has_errors(findings) else compiled, tuple(findings))


def _has_errors(findings: Sequence[Finding]) -> bool:
    return any(finding.is_error for finding in findings)


def _render_all(project: Project, renderer: ModelRenderer) -> tuple[list[Configured], list[Finding]]:
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
        findings += rendered.findings
        merged = merge_configs([*file.configs, rendered.config])
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
        found = [resolve_reference(reference, names) for reference in model.rendered.references]
        findings += [item for item in found if isinstance(item, Finding)]
        parents[f"model.{project.name}.{name}"] = [item for item in found if isinstance(item, str)]
    return parents, findings


def _finish_all(
    project: Project,
    options: RenderOptions,
    renderer: ModelRenderer,
    enabled: Mapping[str, Configured],
    graph: Graph,
    names: Names,
) -> tuple[CompiledProject, list[Finding]]:
    streaming = _streaming_nodes(project, graph)
    findings: list[Finding] = []
    models: dict[str, CompiledModel] = {}
    rewritten: dict[str, Rewritten] = {}
    for name, model in enabled.items():
        unique_id = f"model.{project.name}.{name}"
        rewrite = rewrite_model(model.rendered, renderer, names, graph.parents[unique_id], streaming)
        output, problems = resolve_output(project, options, model.rendered.file, model.config, model.places)
        findings += [*rewrite.findings, *problems]
        rewritten[unique_id] = rewrite
        models[unique_id] = CompiledModel(
            unique_id=unique_id,
            file=model.rendered.file,
            config=model.config,
            config_places=model.places,
            sql=rewrite.text.text,
            reads=rewrite.reads,
            streaming=unique_id in streaming,
            output=output,
            compiled_path=compiled_path(project, model.rendered.file),
        )

    def locate(unique_id: str, offset: int) -> Place:
        rendered = enabled[models[unique_id].name].rendered
        return renderer.source_map(rendered).locate(rewritten[unique_id].text.original_offset(offset))

    ordered = {node: models[node] for node in graph.order if node in models}
    return CompiledProject(project, graph, ordered, locate), findings


def _streaming_nodes(project: Project, graph: Graph) -> frozenset[str]:
    """The nodes with a stream among their ancestors, or that are one."""
    streams = {f"source.{project.name}.{table.full_name}" for table in project.sources if table.mode == "stream"}
    for node in graph.order:
        if any(parent in streams for parent in graph.parents[node]):
            streams.add(node)
    return frozenset(streams)


def compiled_path(project: Project, file: ModelFile) -> str:
    """Returns where the compiled SQL of `file` is written below target/, as dbt does it."""
    return f"compiled/{project.name}/{file.path}"
