"""Analyzes all models of a project, each once, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.digest import declared, digest
from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.nodes import ModelSummary, Node, Opaque, View
from sqlstream.compiler.flow.operators.deduplicating import with_deduplication
from sqlstream.compiler.flow.operators.inputs import seed_node, source_node, stored_node
from sqlstream.compiler.flow.types.values import read_type
from sqlstream.compiler.graph import seed_id, source_id, stored_id
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.project.values import Project, Target


@dataclass(frozen=True)
class Analysis:
    """The analysis of one model. `key` is a digest of its SQL and of all that it reads, directly or indirectly.

    `tree` builds the operators on the first call.
    """

    found: ModelSummary
    key: str
    tree: Callable[[], Node] = field(repr=False)

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """The columns of the model; None if they are unknown."""
        return self.found.columns

    @property
    def problems(self) -> tuple[SqlProblem, ...]:
        """The problems in the model's own SQL."""
        return self.found.problems

    @property
    def is_read(self) -> bool:
        """Whether sqlglot could parse the model."""
        return self.found.is_read

    @property
    def node(self) -> Node:
        """The operators of the model, down to its sources."""
        return self.tree()


def analyse_models(
    project: Project, models: Mapping[str, CompiledModel], memory: Memory | None = None
) -> dict[str, Analysis]:
    """Returns the analysis of each model by unique id. `models` must be in the order of the graph."""
    memory = memory or Memory()
    forest = _Forest(project, models, memory)
    return {
        unique_id: Analysis(forest.found(unique_id), forest.keys[unique_id], partial(forest.tree, unique_id))
        for unique_id in models
    }


def _knows_functions(target: Target) -> bool:
    """Returns whether Spark has only built-in functions: packages, jars, extensions and catalogs can add others."""
    adding = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.submit", "spark.driver.extraClassPath")
    return not target.packages and not any(name.startswith(adding) for name in target.spark) and target.remote is None


class _Forest:
    """The trees and the summaries of the models of a project. The cache has the summaries, so it builds only the trees
    that a new or changed model needs.
    """

    def __init__(self, project: Project, models: Mapping[str, CompiledModel], memory: Memory) -> None:
        self._models = models
        self._memory = memory
        self._knows_functions = _knows_functions(project.target)
        self._functions = {function.name.lower(): function.returns for function in project.functions}
        read = {item.node_id for model in models.values() for item in model.reads}
        tables = {node: table for table in project.sources if (node := source_id(project.name, table)) in read}
        seeds = {node: seed for seed in project.seeds if (node := seed_id(project.name, seed.name)) in read}
        self._leaves: dict[str, Callable[[], Node]] = {
            **{node: partial(source_node, project.name, table) for node, table in tables.items()},
            **{node: partial(seed_node, project.name, seed) for node, seed in seeds.items()},
        }
        self._views: dict[str, Node] = {}
        self._found: dict[str, ModelSummary] = {}
        self._order = {node: position for position, node in enumerate(models)}
        self.keys = {node: digest(node, declared(leaf)) for node, leaf in (*tables.items(), *seeds.items())}
        for unique_id, model in models.items():
            inputs = [(item.view, self.keys.get(item.node_id)) for item in model.reads]
            self.keys[unique_id] = digest(unique_id, model.sql, inputs, self._knows_functions, self._functions)
            if model.config.is_stored:
                self._add_stored(project, model)

    def _add_stored(self, project: Project, model: CompiledModel) -> None:
        """Adds the stored output of a model as a leaf of the models that read it."""
        node = stored_id(project.name, model.name)
        self._leaves[node] = partial(self._stored_node, model, node)
        self.keys[node] = digest(node, self.keys[model.unique_id], model.streams_when_stored)

    def _stored_node(self, model: CompiledModel, node: str) -> Node:
        return stored_node(node, self.found(model.unique_id).columns, stream=model.streams_when_stored)

    def found(self, unique_id: str) -> ModelSummary:
        """Returns the summary of a model."""
        if unique_id not in self._found and self._models[unique_id].file.is_python:
            self._found[unique_id] = ModelSummary(None, (), is_read=True)  # without building its inputs
        elif unique_id not in self._found:
            known = self._memory.recall("flow", self._models[unique_id].file.path, self.keys[unique_id])
            if known is None:
                self._build(unique_id)
            else:
                self._found[unique_id] = known
        return self._found[unique_id]

    def tree(self, unique_id: str) -> Node:
        """Returns the operators of a model."""
        (tree,) = self.view(unique_id).children
        return tree

    def view(self, node_id: str) -> Node:
        """Returns the rows of a source, a seed or a model, as the same object for each reference."""
        if node_id in self._leaves and node_id not in self._views:
            self._views[node_id] = self._leaves[node_id]()
        for unique_id in self._missing(node_id):
            self._build(unique_id)
        return self._views[node_id]

    def _missing(self, node_id: str) -> list[str]:
        """Returns the models without a view that `node_id` needs, including itself, parents first."""
        needed: dict[str, None] = {}
        waiting = [node_id]
        while waiting:
            node = waiting.pop()
            if node in self._models and node not in self._views and node not in needed:
                needed[node] = None
                waiting += [read.node_id for read in self._models[node].reads]
        return sorted(needed, key=self._order.__getitem__)

    def _build(self, unique_id: str) -> None:
        """Builds the tree and the summary of a model from its SQL, and caches the summary."""
        model, key = self._models[unique_id], self.keys[unique_id]
        if model.file.is_python:
            self._build_python(model)
            return
        read = {item.view.lower(): self.view(item.node_id) for item in model.reads if item.node_id in self.keys}
        # loads sqlglot only if there is something to parse
        from sqlstream.compiler.flow.operators.build import Builder
        from sqlstream.compiler.flow.operators.relations import TooManyJoinsError
        from sqlstream.compiler.flow.text import Text
        from sqlstream.compiler.sql.parse import ParsedSql, parse_text

        text = Text(model.unique_id, model.sql)
        functions = {name: read_type(ddl) for name, ddl in self._functions.items()}
        builder = Builder(text, parse_text(text.read), self._knows_functions, functions)
        try:
            tree = builder.build(read)
        except (RecursionError, TooManyJoinsError):  # hundreds of combined queries are no error
            builder = replace(builder, parsed=ParsedSql(None), problems=[])
            tree = builder.build(read)
        tree, wrong = with_deduplication(model, tree)
        problems = dict.fromkeys([*grammar_problems(text.read, set(read)), *builder.problems, *wrong])
        parsed = builder.parsed
        is_read, is_doubtful = parsed.tree is not None, parsed.is_doubtful
        found = ModelSummary(tree.columns, tuple(problems), is_read, parsed.unread_at, is_doubtful)
        self._views[unique_id], self._found[unique_id] = _view(tree), found
        self._memory.note("flow", model.file.path, key, found)
        text.release()

    def _build_python(self, model: CompiledModel) -> None:
        """Builds the tree of a Python model: unknown rows that depend on all its inputs."""
        inputs = tuple(self.view(node) for node in dict.fromkeys(read.node_id for read in model.reads))
        rows = Opaque(where=Where(model.unique_id, 0), columns=None, children=inputs)
        tree, _ = with_deduplication(model, rows)  # finds no problem in unknown columns
        self._views[model.unique_id] = _view(tree)


def _view(tree: Node) -> Node:
    return View(where=tree.where, columns=tree.columns, children=(tree,))
