"""The third stage: each model with its rewritten SQL and its output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from sqlstream.compiler.cache import CachedModel
from sqlstream.compiler.compiled import CompiledModel, Output
from sqlstream.compiler.configured import ConfiguredModel
from sqlstream.compiler.digest import declared, digest
from sqlstream.compiler.generic_tests import unknown_tables
from sqlstream.compiler.graph import (
    closure_of,
    model_id,
    resolve_in,
    seed_id,
    source_id,
    view_of,
)
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.outputs import resolve_outputs
from sqlstream.compiler.python_models import views_of
from sqlstream.compiler.render.rendered import RenderedModel, RenderOptions, TemplateReads, inputs_of
from sqlstream.compiler.rendering import CachedRenderer, values_of
from sqlstream.compiler.rewrite import data_tests
from sqlstream.compiler.rewrite.bare_names import bare_name_problems
from sqlstream.compiler.rewrite.deduplicate import with_note
from sqlstream.compiler.spark_versions import TESTED, knows_functions, minor_version
from sqlstream.compiler.sql.edits import EditedText, ViewReference, apply_edits
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

    @cached_property
    def cached(self) -> Mapping[str, CachedModel]:
        """What is known about each model, by unique id."""
        return {node: self.linked.enabled[model.name].rendered for node, model in self.models.items()}

    def locate(self, unique_id: str, offset: int) -> Place:
        """Returns the place of the character at `offset` (0-based) of a model's compiled SQL. The cache keeps it."""
        rendered = self.cached[unique_id]
        return self.models[unique_id].place_at(offset, lambda at: self.renderer.locate(rendered, at))


def assemble_models(linked: LinkedProject, options: RenderOptions, renderer: CachedRenderer) -> Assembled:
    """Returns the compiled models of a linked project."""
    keys = _Keys(linked, options)
    sinks = {sink.name: sink for sink in linked.project.sinks}
    findings: list[Finding] = []
    models: dict[str, CompiledModel] = {}
    broken: dict[str, Sequence[Finding]] = {}
    for name, model in linked.enabled.items():
        unique_id = model_id(linked.project.name, name)
        cached = model.rendered
        cached.require(keys.of(unique_id, model, cached.results.sink_reads))
        if model.file.is_python:
            rewritten = _python_text(linked, model)
        else:
            rewritten = _rewrite(linked, model, unique_id, renderer)
        outputs, reads, problems = resolve_outputs(sinks, options, model)
        if reads is not None:
            cached.note(outputs=outputs, sink_reads=reads, key=keys.of(unique_id, model, reads))
        problems = [*rewritten.findings, *problems, *unknown_tables(model.file, linked.spellings)]
        findings += problems
        if any(problem.is_error for problem in problems):
            broken[unique_id] = problems
        models[unique_id] = _assemble(linked, options, model, rewritten, outputs)
    ordered = {node: models[node] for node in linked.graph.order if node in models}
    return Assembled(ordered, tuple(findings), broken, linked, renderer)


class _Keys:
    """Digests of what the results about each model depend on, besides its template."""

    def __init__(self, linked: LinkedProject, options: RenderOptions) -> None:
        self._options = options
        project = linked.project
        target = project.target
        functions = {function.name.lower(): function.returns for function in project.functions}
        common = (knows_functions(target), functions)
        self._target = digest(declared(target), *minor_version(options.spark or TESTED[-1]))
        self._sinks = {sink.name: digest(declared(sink)) for sink in project.sinks}
        read = {node for nodes in linked.graph.parents.values() for node in nodes}
        leaves = {
            **{source_id(project.name, table): table for table in project.sources},
            **{seed_id(project.name, seed.name): seed for seed in project.seeds},
        }
        self._sql = {node: digest(node, declared(leaf)) for node, leaf in leaves.items() if node in read}
        models = {model_id(project.name, name): model for name, model in linked.enabled.items()}
        for node in (node for node in linked.graph.order if node in models):
            # the digests of the inputs are in that of a model, so a change reaches all models downstream
            inputs = [
                (parent, parent in linked.streaming, self._sql[parent])
                for parent in linked.inputs_of(linked.graph.parents[node])
            ]
            model = models[node]
            tests = [(test.name, test.action, test.query, data_tests.passes(test)) for test in model.file.data_tests]
            file, is_enforced = model.file, model.config.contract.enforced
            checks = [each.expression for each in file.constraints if each.type == "check"] if is_enforced else []
            key = digest(node, model.rendered.model.sql, model.config.deduplicate, tests, checks, inputs, *common)
            self._sql[node] = self._sql[linked.stored.get(node, node)] = key

    def of(self, unique_id: str, model: ConfiguredModel, sink_reads: TemplateReads) -> str:
        """Returns the digest for a model whose sinks have read `sink_reads`."""
        config = model.config
        written: tuple[object, ...] = ()
        if config.query_sinks:
            sinks = [(name, self._sinks.get(name)) for name in config.query_sinks]
            written = (sinks, model.output_name, config.plain(), self._target, values_of(sink_reads, self._options))
        return digest(model.rendered.results.template, self._sql[unique_id], *written)


@dataclass(frozen=True)
class _Rewritten:
    """The text that runs, with its edits, and the views that it reads in order of first appearance."""

    text: EditedText
    reads: tuple[ViewReference, ...]
    findings: tuple[Finding, ...]


def _python_text(linked: LinkedProject, model: ConfiguredModel) -> _Rewritten:
    """Returns the unchanged text of a Python model, with a read for each of its references."""
    rendered = model.rendered.model
    named = [resolve_in(model.file, each, linked.project, linked.names) for each in rendered.references]
    nodes = linked.inputs_of([node for node in named if isinstance(node, str)])
    views = views_of([view_of(node) for node in nodes])
    reads = tuple(ViewReference(view, node) for view, node in zip(views, nodes, strict=True))
    return _Rewritten(apply_edits(rendered.sql, ()), reads, ())


def _rewrite(linked: LinkedProject, model: ConfiguredModel, unique_id: str, renderer: CachedRenderer) -> _Rewritten:
    rendered = model.rendered.model
    parents = linked.inputs_of(linked.graph.parents[unique_id])
    views = {view_of(node): node for node in parents}
    repeated = frozenset(view for view, node in views.items() if node in linked.streaming)
    rewriting = model.rendered.results.rewriting
    if rewriting is None:
        from sqlstream.compiler.rewrite.sql import plan_rewriting  # with the grammar, which the cache does without

        macros = renderer.macro_texts if rendered.macros_used else ()
        rewriting = plan_rewriting(rendered, views, repeated, macros)
        model.rendered.note(rewriting=rewriting)
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
        sql=data_tests.with_tests(
            with_note(rewritten.text.text, model.config.deduplicate, python=model.file.is_python),
            model.file.data_tests,
            python=model.file.is_python,
        ),
        reads=rewritten.reads,
        streaming=unique_id in linked.streaming,
        output=next(iter(outputs), None),
        also=tuple(outputs[1:]),
        compiled_path=f"compiled/{linked.project.name}/{model.file.path}",
        inputs=inputs_of(model.rendered.model.reads, options),
    )
