"""What is done before or beside the stages of a compilation to make them fast; their result does not depend on it."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Protocol

from sqlstream.compiler.assembled import assemble_models
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import quiet
from sqlstream.compiler.flow.analyse import analyse_models
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.judged import is_judged
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.workers import MODELS_WORTH_A_RENDERER, Workers, share, share_graph, work_ahead, working
from sqlstream.errors import FindingsError
from sqlstream.project.values import Project


class Ahead(Protocol):
    """Does parts of the stages ahead, and leaves what they gave in the memory of the compilation."""

    def render(self, renderer: CachedRenderer) -> None:
        """Renders models before the stage that renders all."""

    def analyse(self, linked: LinkedProject) -> AbstractContextManager[None]:
        """Assembles and analyses models before the body, or while it goes on."""


class NothingAhead:
    """Leaves all work to the stages."""

    def render(self, renderer: CachedRenderer) -> None:
        """Renders nothing."""

    def analyse(self, linked: LinkedProject) -> AbstractContextManager[None]:
        """Analyses nothing."""
        del linked
        return nullcontext()


NOTHING_AHEAD = NothingAhead()


class WorkersAhead:
    """Has `workers` do what `memory` does not know, where that pays: models of `project`, rendered with `options`."""

    def __init__(self, project: Project, options: RenderOptions, memory: Memory, workers: Workers) -> None:
        self._project, self._options, self._memory, self._workers = project, quiet(options), memory, workers
        self._unknown: frozenset[str] = frozenset()

    def render(self, renderer: CachedRenderer) -> None:
        """Renders the models that are not remembered, where they are many."""
        if renderer.macro_findings:
            return
        missing = renderer.missing(self._project.models)
        parts = share([file.path for file in missing], self._workers, MODELS_WORTH_A_RENDERER)
        work_ahead(self._memory, self._workers, parts, partial(_render_part, self._project, self._options))
        self._unknown = frozenset(model_id(self._project.name, file.name) for file in missing)

    def analyse(self, linked: LinkedProject) -> AbstractContextManager[None]:
        """Analyses the models that are not remembered, with all that read them."""
        graph = linked.graph
        nodes = {model_id(self._project.name, name) for name in linked.enabled}
        to_do = closure_of(graph.children, self._unknown & nodes)
        parts = share_graph(graph.parents, [node for node in graph.order if node in to_do], self._workers)
        others = len(nodes) - len(to_do)
        return working(self._memory, self._workers, parts, others, partial(_analyse_part, linked, self._options))


def _render_part(project: Project, options: RenderOptions, paths: Collection[str], memory: Memory) -> None:
    """Renders some models; what a template logs is logged when its model is compiled."""
    renderer = CachedRenderer(project, options, memory)
    for file in project.models:
        with suppress(FindingsError):
            if file.path in paths:
                renderer.render(file)


def _analyse_part(linked: LinkedProject, options: RenderOptions, nodes: Collection[str], memory: Memory) -> None:
    """Assembles and analyses some models, among which are all that they read and that is not remembered."""
    project = linked.project
    renderer = CachedRenderer(project, options, memory)
    assembled = assemble_models(linked.only(closure_of(linked.graph.parents, nodes)), options, renderer, memory)
    if not assembled.broken:
        analyses = analyse_models(project, assembled.models, memory)
        if is_judged(project.target):
            compiled = CompiledProject(project, linked.graph, assembled.models, options)
            streaming_rules(compiled, analyses, memory, assembled.places)
    renderer.remember_places()
