"""Compiles parts of a project in worker processes, which write only cache entries.

The compilation itself then runs as usual and finds most results in the cache. So its result does not depend on the
number of workers, or on whether one of them failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial

from sqlstream.compiler.assembled import assemble_models
from sqlstream.compiler.cache.memory import Entries, Memory
from sqlstream.compiler.cache.rendering import CachedRenderer
from sqlstream.compiler.compiled import CompiledProject
from sqlstream.compiler.configured import quiet
from sqlstream.compiler.flow.analyse import analyse_models
from sqlstream.compiler.graph import closure_of
from sqlstream.compiler.linked import LinkedProject
from sqlstream.compiler.node_ids import model_id
from sqlstream.compiler.render.values import RenderOptions
from sqlstream.compiler.rules.streams.modes import streaming_rules
from sqlstream.compiler.spark_versions import rules_apply
from sqlstream.compiler.workers import MODELS_WORTH_A_RENDERER, Workers, share, share_graph
from sqlstream.errors import FindingsError
from sqlstream.project.values import Project


class WorkAhead:
    """Lets `workers` compile the models of `project` that are not in `memory`, if that is faster."""

    def __init__(self, project: Project, options: RenderOptions, memory: Memory, workers: Workers) -> None:
        self._project, self._options, self._memory, self._workers = project, quiet(options), memory, workers
        self._unknown: frozenset[str] = frozenset()

    def render(self, renderer: CachedRenderer) -> None:
        """Renders the models that are not in the cache."""
        if renderer.macro_findings:
            return
        missing = renderer.missing(self._project.models)
        parts = share([file.path for file in missing], self._workers, MODELS_WORTH_A_RENDERER)
        self._run(parts, self._render_part)
        self._unknown = frozenset(model_id(self._project.name, file.name) for file in missing)

    def analyse(self, linked: LinkedProject) -> None:
        """Assembles and analyzes the models that are not in the cache, and everything downstream."""
        graph = linked.graph
        nodes = {model_id(self._project.name, name) for name in linked.enabled}
        to_do = closure_of(graph.children, self._unknown & nodes)
        parts = share_graph(graph.parents, [node for node in graph.order if node in to_do], self._workers)
        self._run(parts, partial(self._analyse_part, linked))

    def _run(self, parts: Sequence[Collection[str]], job: Callable[[Collection[str]], None]) -> None:
        """Runs `job` for each of `parts` in the workers, and adds their results to the cache."""
        if len(parts) > 1:
            for entries in self._workers.run([partial(self._new_entries, job, frozenset(part)) for part in parts]):
                self._memory.new.update(entries)

    def _new_entries(self, job: Callable[[Collection[str]], None], part: Collection[str]) -> Entries:
        """Returns the entries that `job` adds to the cache of this process."""
        before = dict(self._memory.new)
        job(part)
        return {at: entry for at, entry in self._memory.new.items() if before.get(at) != entry}

    def _render_part(self, paths: Collection[str]) -> None:
        """Renders some models. Messages of templates are logged later, when the model is compiled."""
        renderer = CachedRenderer(self._project, self._options, self._memory)
        for file in (file for file in self._project.models if file.path in paths):
            with suppress(FindingsError):
                renderer.render(file)

    def _analyse_part(self, linked: LinkedProject, nodes: Collection[str]) -> None:
        """Assembles and analyzes some models, including all their upstream models that are not in the cache."""
        options, memory = self._options, self._memory
        renderer = CachedRenderer(self._project, options, memory)
        assembled = assemble_models(linked.only(closure_of(linked.graph.parents, nodes)), options, renderer, memory)
        if not assembled.broken:
            analyses = analyse_models(self._project, assembled.models, memory)
            if rules_apply(self._project.target):
                compiled = CompiledProject(self._project, linked.graph, assembled.models, options)
                streaming_rules(compiled, analyses, memory, assembled)
        renderer.remember_places()
