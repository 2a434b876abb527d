"""The third stage: each model with its rewritten SQL and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.graph import closure_of, model_id, resolve_reference
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.outputs import resolve_outputs
from sqlstream.compiler.render.values import RenderOptions, inputs_of
from sqlstream.compiler.rewrite.deduplicate import with_note
from sqlstream.compiler.rewrite.sql import Rewritten, python_text, rewrite_model
from sqlstream.errors import Finding
from sqlstream.location import Place


@dataclass(frozen=True)
class Assembled:
    """The compiled models by unique id in the order of the graph, and their findings.

    `broken` has the findings of each model with errors in its hints or its sink.
    """

    models: Mapping[str, CompiledModel]
    findings: tuple[Finding, ...]
    broken: Mapping[str, Sequence[Finding]]
    linked: LinkedProject
    renderer: CachedRenderer

    @cached_property
    def unbroken(self) -> Mapping[str, CompiledModel]:
        """The models without broken upstream models, which would repeat a missing watermark in each query."""
        left_out = closure_of(self.linked.graph.children, self.broken)
        return {node: model for node, model in self.models.items() if node not in left_out}

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL. The cache keeps it."""
        model = self.models[unique_id]
        rendered = self.linked.enabled[model.name].rendered
        return model.place_at(offset, lambda at: self.renderer.locate(rendered, at))


def assemble_models(
    linked: LinkedProject, options: RenderOptions, renderer: CachedRenderer, memory: Memory
) -> Assembled:
    """Returns the compiled models of a linked project."""
    findings: list[Finding] = []
    models: dict[str, CompiledModel] = {}
    broken: dict[str, Sequence[Finding]] = {}
    for name, model in linked.enabled.items():
        unique_id = model_id(linked.project.name, name)
        rewritten = _rewrite(linked, model, unique_id, renderer, memory)
        outputs, problems = resolve_outputs(linked.project, options, model, memory)
        problems = [*rewritten.findings, *problems]
        findings += problems
        if any(problem.is_error for problem in problems):
            broken[unique_id] = problems
        models[unique_id] = _assemble(linked, options, model, rewritten, outputs)
    ordered = {node: models[node] for node in linked.graph.order if node in models}
    return Assembled(ordered, tuple(findings), broken, linked, renderer)


def _rewrite(
    linked: LinkedProject, model: ConfiguredModel, unique_id: str, renderer: CachedRenderer, memory: Memory
) -> Rewritten:
    if model.file.is_python:
        nodes = [resolve_reference(reference, linked.names) for reference in model.rendered.model.references]
        return python_text(model.rendered, linked.inputs_of([node for node in nodes if isinstance(node, str)]))
    inputs = linked.inputs_of(linked.graph.parents[unique_id])
    return rewrite_model(model.rendered, renderer, inputs, linked.inputs, memory)


def _assemble(
    linked: LinkedProject,
    options: RenderOptions,
    model: ConfiguredModel,
    rewritten: Rewritten,
    outputs: Sequence[Output],
) -> CompiledModel:
    unique_id = model_id(linked.project.name, model.file.name)
    return CompiledModel(
        unique_id=unique_id,
        rendered=model.rendered.model,
        rewritten=rewritten.text,
        config=model.config,
        config_places=model.places,
        sql=with_note(rewritten.text.text, model.config.deduplicate, python=model.file.is_python),
        reads=rewritten.reads,
        streaming=unique_id in linked.inputs.streaming,
        output=next(iter(outputs), None),
        also=tuple(outputs[1:]),
        compiled_path=f"compiled/{linked.project.name}/{model.file.path}",
        inputs=inputs_of(model.rendered.model.reads, options),
    )
