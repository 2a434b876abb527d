"""The third stage: each model's SQL rewritten, its sink filled in, and both put together as a compiled model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.graph import resolve_reference
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.outputs import resolve_output
from sqlstream.compiler.places import CachedPlaces, Places
from sqlstream.compiler.render.values import RenderOptions, inputs_of
from sqlstream.compiler.rewrite.deduplicate import with_note
from sqlstream.compiler.rewrite.sql import Rewritten, python_text, rewrite_model
from sqlstream.errors import Finding
from sqlstream.project.values import ModelFile, Project


@dataclass(frozen=True)
class Assembled:
    """The compiled models by unique id, in the order of the graph, and what is wrong with them. `broken` has the
    findings of each model whose hints or sink are wrong; `places` finds the places of findings.
    """

    models: Mapping[str, CompiledModel]
    findings: tuple[Finding, ...]
    broken: Mapping[str, Sequence[Finding]]
    places: Places


def assemble_models(
    linked: LinkedProject, options: RenderOptions, renderer: CachedRenderer, memory: Memory
) -> Assembled:
    """Returns the compiled models of a linked project."""
    findings: list[Finding] = []
    models: dict[str, CompiledModel] = {}
    broken: dict[str, Sequence[Finding]] = {}
    rewritten = {
        model_id(linked.project.name, name): _rewritten(linked, name, renderer, memory) for name in linked.enabled
    }
    for model in linked.enabled.values():
        file = model.rendered.model.file
        unique_id = model_id(linked.project.name, file.name)
        output, problems = resolve_output(linked.project, options, file, model.config, model.places, memory)
        problems = [*rewritten[unique_id].findings, *problems]
        findings += problems
        broken |= {unique_id: problems} if any(problem.is_error for problem in problems) else {}
        models[unique_id] = _assembled(linked, options, model, rewritten[unique_id], output)
    ordered = {node: models[node] for node in linked.graph.order if node in models}
    places = CachedPlaces(ordered, linked.enabled, renderer)
    return Assembled(ordered, tuple(findings), broken, places)


def _rewritten(linked: LinkedProject, name: str, renderer: CachedRenderer, memory: Memory) -> Rewritten:
    rendered = linked.enabled[name].rendered
    if rendered.model.file.is_python:
        nodes = [resolve_reference(reference, linked.names) for reference in rendered.model.references]
        return python_text(rendered, [node for node in nodes if isinstance(node, str)])
    parents = linked.graph.parents[model_id(linked.project.name, name)]
    return rewrite_model(rendered, renderer, parents, linked.inputs, memory)


def _assembled(
    linked: LinkedProject, options: RenderOptions, model: ConfiguredModel, rewritten: Rewritten, output: Output | None
) -> CompiledModel:
    file = model.rendered.model.file
    unique_id = model_id(linked.project.name, file.name)
    return CompiledModel(
        unique_id=unique_id,
        rendered=model.rendered.model,
        rewritten=rewritten.text,
        config=model.config,
        config_places=model.places,
        sql=with_note(rewritten.text.text, model.config.deduplicate, python=file.is_python),
        reads=rewritten.reads,
        streaming=unique_id in linked.inputs.streaming,
        output=output,
        compiled_path=compiled_path(linked.project, file),
        inputs=inputs_of(model.rendered.model.reads, options),
    )


def compiled_path(project: Project, file: ModelFile) -> str:
    """Returns where the compiled SQL of `file` is written below target/, as dbt does it."""
    return f"compiled/{project.name}/{file.path}"
