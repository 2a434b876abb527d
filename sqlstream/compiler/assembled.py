"""The third stage: each model with its rewritten SQL and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.digest import digest
from sqlstream.compiler.graph import ViewReference, closure_of, model_id, resolve_reference, view_of
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.outputs import resolve_outputs
from sqlstream.compiler.python_models import views_of
from sqlstream.compiler.render.values import RenderedModel, RenderOptions, inputs_of
from sqlstream.compiler.rewrite.bare_names import bare_name_problems
from sqlstream.compiler.rewrite.deduplicate import with_note
from sqlstream.compiler.rewrite.sql import plan_rewriting
from sqlstream.compiler.sql.edits import EditedText, apply_edits
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
        if model.file.is_python:
            rewritten = _python_text(linked, model)
        else:
            rewritten = _rewrite(linked, model, unique_id, renderer, memory)
        outputs, problems = resolve_outputs(linked.project, options, model, memory)
        problems = [*rewritten.findings, *problems]
        findings += problems
        if any(problem.is_error for problem in problems):
            broken[unique_id] = problems
        models[unique_id] = _assemble(linked, options, model, rewritten, outputs)
    ordered = {node: models[node] for node in linked.graph.order if node in models}
    return Assembled(ordered, tuple(findings), broken, linked, renderer)


@dataclass(frozen=True)
class _Rewritten:
    """The text that runs, with its edits, and the views that it reads in order of first appearance."""

    text: EditedText
    reads: tuple[ViewReference, ...]
    findings: tuple[Finding, ...]


def _python_text(linked: LinkedProject, model: ConfiguredModel) -> _Rewritten:
    """Returns the unchanged text of a Python model, with a read for each of its references."""
    rendered = model.rendered.model
    named = [resolve_reference(reference, linked.names) for reference in rendered.references]
    nodes = linked.inputs_of([node for node in named if isinstance(node, str)])
    views = views_of([view_of(node) for node in nodes])
    reads = tuple(ViewReference(view, node) for view, node in zip(views, nodes, strict=True))
    return _Rewritten(apply_edits(rendered.sql, ()), reads, ())


def _rewrite(
    linked: LinkedProject, model: ConfiguredModel, unique_id: str, renderer: CachedRenderer, memory: Memory
) -> _Rewritten:
    rendered = model.rendered.model
    parents = linked.inputs_of(linked.graph.parents[unique_id])
    views = {view_of(node): node for node in parents}
    repeated = frozenset(view for view, node in views.items() if node in linked.streaming)
    key = digest(model.rendered.digest, parents, sorted(repeated))
    macros = renderer.macro_texts if rendered.macros_used else ()
    rewriting = memory.remember(
        "rewrite", rendered.file.path, key, lambda: plan_rewriting(rendered, views, repeated, macros)
    )
    names = bare_name_problems(rewriting.bare_names, rendered.file.name, linked.spellings)
    is_blank = not rendered.sql.strip()  # an offset in blank text would be located at the end of the template
    findings = [
        problem.at(Place(rendered.file.location) if is_blank else renderer.locate(model.rendered, problem.offset))
        for problem in (*rewriting.problems, *names)
    ]
    return _Rewritten(
        apply_edits(rendered.sql, rewriting.edits), rewriting.reads, (*_clash(parents, rendered), *findings)
    )


def _clash(parents: Sequence[str], rendered: RenderedModel) -> tuple[Finding, ...]:
    """Returns the findings for inputs of one model whose views have the same name.

    Inputs of different models can share a view's name, because Spark analyzes each text with its own inputs.
    """
    by_view: dict[str, list[str]] = {}
    for node in parents:
        by_view.setdefault(view_of(node).lower(), []).append(node)
    return tuple(
        Finding(
            "duplicate-name",
            f"`{rendered.file.name}` reads two inputs with the same view name `{view}`",
            " and ".join(nodes) + " have the same view name, ignoring case",
            "rename one of them",
            rendered.file.location,
        )
        for view, nodes in by_view.items()
        if len(nodes) > 1
    )


def _assemble(
    linked: LinkedProject,
    options: RenderOptions,
    model: ConfiguredModel,
    rewritten: _Rewritten,
    outputs: Sequence[Output],
) -> CompiledModel:
    unique_id = model_id(linked.project.name, model.file.name)
    return CompiledModel(
        unique_id=unique_id,
        rendered=model.rendered.model,
        rewritten=rewritten.text,
        config=model.config,
        config_locations=model.locations,
        sql=with_note(rewritten.text.text, model.config.deduplicate, python=model.file.is_python),
        reads=rewritten.reads,
        streaming=unique_id in linked.streaming,
        output=next(iter(outputs), None),
        also=tuple(outputs[1:]),
        compiled_path=f"compiled/{linked.project.name}/{model.file.path}",
        inputs=inputs_of(model.rendered.model.reads, options),
    )
