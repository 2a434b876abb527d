"""The trees of all models of a project, each built once, parents first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from sqlstream.compiler.cache.digest import declared, digest
from sqlstream.compiler.cache.memory import Memory
from sqlstream.compiler.compiled import CompiledModel
from sqlstream.compiler.flow.columns import Column, Where
from sqlstream.compiler.flow.nodes import Node, Opaque, View
from sqlstream.compiler.flow.operators.deduplicating import deduplicated
from sqlstream.compiler.flow.operators.inputs import seed_node, source_node
from sqlstream.compiler.flow.summary import ModelSummary
from sqlstream.compiler.flow.types.values import read_type
from sqlstream.compiler.node_ids import seed_id, source_id
from sqlstream.compiler.sql.grammar import grammar_problems
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.values import Project, Target


@dataclass(frozen=True)
class Analysis:
    """What is known of one model without Spark. `key` is a digest of the model's SQL and of all that it reads, however
    far away. The tree is made or remembered when it is first asked for.
    """

    found: ModelSummary
    key: str
    tree: Callable[[], Node] = field(repr=False)

    @property
    def columns(self) -> tuple[Column, ...] | None:
        """The columns that the model gives, None where they are not known."""
        return self.found.columns

    @property
    def problems(self) -> tuple[SqlProblem, ...]:
        """What is wrong with names in the model's own text."""
        return self.found.problems

    @property
    def is_read(self) -> bool:
        """Whether sqlglot could read the model."""
        return self.found.is_read

    @property
    def node(self) -> Node:
        """The operators of the model, down to its sources."""
        return self.tree()


def analyse_models(
    project: Project, models: Mapping[str, CompiledModel], memory: Memory | None = None
) -> dict[str, Analysis]:
    """Returns the analysis of each of `models`, which are in the order of the graph, by unique id."""
    memory = memory or Memory()
    forest = _Forest(project, models, memory)
    remembered = {unique_id: forest.remembered(unique_id) for unique_id in models}
    return {
        unique_id: Analysis(found or forest.found(unique_id), forest.keys[unique_id], partial(forest.tree, unique_id))
        for unique_id, found in remembered.items()
    }


def _knows_functions(target: Target) -> bool:
    """Whether Spark has no functions but its own: packages, jars, extensions and catalogs bring others."""
    brings = ("spark.jars", "spark.sql.extensions", "spark.sql.catalog", "spark.submit", "spark.driver.extraClassPath")
    return not target.packages and not any(name.startswith(brings) for name in target.spark) and target.remote is None


class _Forest:
    """The trees of a project, each made when it is needed for the first time: remembered, or else built."""

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
        self._order = {node: position for position, node in enumerate(models)}
        self.keys = {node: digest(node, declared(leaf)) for node, leaf in (*tables.items(), *seeds.items())}
        for unique_id, model in models.items():
            inputs = [(item.view, self.keys.get(item.node_id)) for item in model.reads]
            self.keys[unique_id] = digest(unique_id, model.sql, inputs, self._knows_functions, self._functions)

    def found(self, unique_id: str) -> ModelSummary:
        """Returns what is known of a model without its tree."""
        return self.remembered(unique_id) or self._build(unique_id)[1]

    def remembered(self, unique_id: str) -> ModelSummary | None:
        """Returns what is remembered of a model, None where nothing is."""
        path, key = self._models[unique_id].file.path, self.keys[unique_id]
        known: ModelSummary | None = self._memory.recall("flow", path, key)
        return known

    def tree(self, unique_id: str) -> Node:
        """Returns the operators of a model."""
        (tree,) = self.view(unique_id).children
        return tree

    def view(self, node_id: str) -> Node:
        """Returns the rows of a source, a seed or a model, as one object however often they are read."""
        if node_id in self._leaves and node_id not in self._views:
            self._views[node_id] = self._leaves[node_id]()
        for unique_id in self._missing(node_id):
            self._views[unique_id] = _view(self._remembered_tree(unique_id) or self._build(unique_id)[0])
        return self._views[node_id]

    def _missing(self, node_id: str) -> list[str]:
        """The models that have no view yet and are needed for that of `node_id`, itself included, parents first."""
        needed: dict[str, None] = {}
        waiting = [node_id]
        while waiting:
            node = waiting.pop()
            if node in self._models and node not in self._views and node not in needed:
                needed[node] = None
                waiting += [read.node_id for read in self._models[node].reads]
        return sorted(needed, key=self._order.__getitem__)

    def _remembered_tree(self, unique_id: str) -> Node | None:
        path, key = self._models[unique_id].file.path, self.keys[unique_id]
        tree: Node | None = self._memory.recall("tree", path, key, self._find)
        return tree

    def _build(self, unique_id: str) -> tuple[Node, ModelSummary]:
        """Builds the tree of a model from its SQL, and notes what was found."""
        model, key = self._models[unique_id], self.keys[unique_id]
        if model.file.is_python:
            return self._build_python(model)
        read = {item.view.lower(): self.view(item.node_id) for item in model.reads if item.node_id in self.keys}
        # sqlglot is loaded only where there is something to parse
        from sqlstream.compiler.flow.operators.build import Builder
        from sqlstream.compiler.flow.operators.relations import TooManyJoinsError
        from sqlstream.compiler.flow.text import Text
        from sqlstream.compiler.sql.parse import ParsedSql, parse_text

        text = Text(model.unique_id, model.sql)
        functions = {name: read_type(ddl) for name, ddl in self._functions.items()}
        builder = Builder(text, parse_text(text.read), self._knows_functions, functions)
        try:
            tree = builder.build(read)
        except (RecursionError, TooManyJoinsError):  # to put hundreds of queries together is no fault
            builder = replace(builder, parsed=ParsedSql(None), problems=[])
            tree = builder.build(read)
        tree, wrong = deduplicated(model, tree)
        problems = dict.fromkeys([*grammar_problems(text.read, set(read)), *builder.problems, *wrong])
        found = ModelSummary(tree.columns, tuple(problems), builder.parsed.tree is not None, builder.parsed.unread_at)
        self._views[unique_id] = _view(tree)
        self._memory.note("flow", model.file.path, key, found)
        self._memory.note("tree", model.file.path, key, tree, _names_of(model, self._views))
        text.let_go()
        return tree, found

    def _build_python(self, model: CompiledModel) -> tuple[Node, ModelSummary]:
        """A Python model gives rows of which nothing is known, made of all that it reads."""
        inputs = tuple(self.view(node) for node in dict.fromkeys(read.node_id for read in model.reads))
        rows = Opaque(where=Where(model.unique_id, 0), columns=None, children=inputs)
        tree, wrong = deduplicated(model, rows)
        self._views[model.unique_id] = _view(tree)
        return tree, ModelSummary(None, wrong, is_read=True)

    def _find(self, name: str) -> Node:
        """Returns the node that `_names_of` calls so."""
        level, node_id = name.split(" ", 1)
        view = self.view(node_id)
        return view if level == "0" else view.children[0]


def _view(tree: Node) -> Node:
    return View(where=tree.where, columns=tree.columns, children=(tree,))


def _names_of(model: CompiledModel, views: Mapping[str, Node]) -> dict[int, str]:
    """The views that a model reads and what lies right below them, by `id()`: they belong to no tree of its own."""
    names: dict[int, str] = {}
    for node_id in {read.node_id: None for read in model.reads if read.node_id in views}:
        names[id(views[node_id])] = f"0 {node_id}"
        names |= {id(child): f"1 {node_id}" for child in views[node_id].children}
    return names
