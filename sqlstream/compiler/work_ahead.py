"""Compiles parts of a project in worker processes, which write only cache entries.

The compilation itself then runs as usual and finds most results in the cache. So its result does not depend on the
number of workers, or on whether one of them failed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol

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
from sqlstream.compiler.sql.sql_text import TEXTS_IN_MEMORY
from sqlstream.compiler.stored import stored_tables
from sqlstream.errors import FindingsError
from sqlstream.project.values import Project

MODELS_WORTH_A_WORKER = 50
"""The fewest models for another process. They compile in about 250 ms, and a process starts in about 50 ms."""

MODELS_WORTH_A_RENDERER = 200
"""The fewest models to render in another process. Without Jinja they take about 40 ms."""

MODELS_IN_A_PART = TEXTS_IN_MEMORY // 4
"""The most new models in a part. Each has up to two texts to tokenize, which several stages use again."""

PARTS_FOR_A_WORKER = 4
"""The number of parts per worker. Parts become smaller, so that all workers end at about the same time."""


class Workers(Protocol):
    """Runs several jobs at the same time."""

    count: int

    def run(self, jobs: Sequence[Callable[[], Entries]]) -> Iterable[Entries]:
        """Returns the results of the jobs that did not fail, in any order."""


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
                columns = {node: analysis.columns for node, analysis in analyses.items()}
                stored = stored_tables(self._project.name, assembled.models, columns)
                compiled = CompiledProject(self._project, linked.graph, assembled.models, options, stored=stored)
                streaming_rules(compiled, analyses, memory, assembled)
        renderer.remember_places()


def share(names: Sequence[str], workers: Workers, worth: int) -> list[Sequence[str]]:
    """Returns `names` in parts of about the same size, at least `worth` each, or one part if there are too few."""
    count = max(1, min(PARTS_FOR_A_WORKER * workers.count, len(names) // worth))
    return [names[start::count] for start in range(count)]


def share_graph(
    parents: Mapping[str, Collection[str]], names: Sequence[str], workers: Workers
) -> list[Collection[str]]:
    """Returns the models `names`, which are in the order of the graph, in parts, or one part if that is cheaper.

    Each part includes all upstream models of its models, so a model can be in several parts. The last parts are the
    smallest.
    """
    if len(names) < 2 * MODELS_WORTH_A_WORKER:
        return [names]
    parts: list[Collection[str]] = list(_parts(parents, names, PARTS_FOR_A_WORKER * workers.count))
    repeated = sum(map(len, parts)) - len(names)
    return parts if repeated * 2 < len(names) else [names]


def _parts(parents: Mapping[str, Collection[str]], names: Collection[str], count: int) -> Iterator[set[str]]:
    """Yields the parts. Each ends when it has 1/`count` of the models that no earlier part has.

    It grows by a model without children in `names`, with all upstream models, at a time.
    """
    done: set[str] = set()
    part: set[str] = set()
    fresh = 0
    wanted, read = set(names), {parent for name in names for parent in parents[name]}
    for leaf in (name for name in names if name not in read):
        closure = closure_of(parents, [leaf]) & wanted
        fresh += len(closure - done - part)
        part |= closure
        if fresh >= min(max((len(names) - len(done)) // count, MODELS_WORTH_A_WORKER), MODELS_IN_A_PART):
            yield part
            done |= part
            part, fresh = set(), 0
    if part:
        yield part
