"""The operators of models, each model built once, parents first; and what they tell about one query."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from sqlstream.compiler.allowances import allows
from sqlstream.compiler.cache import CachedModel
from sqlstream.compiler.compiled import CompiledModel, CompiledProject
from sqlstream.compiler.emission import Emission, ModelRead, explain_emission, explain_reads
from sqlstream.compiler.flow.analysis import ModelSummary
from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.functions import RANDOM
from sqlstream.compiler.flow.nodes import Deduplicate, Node, Opaque, Scan, View, kept_state
from sqlstream.compiler.flow.operators.builder import Builder
from sqlstream.compiler.flow.operators.from_clause import TooManyJoinsError
from sqlstream.compiler.flow.operators.leaves import seed_node, source_node, stored_node
from sqlstream.compiler.flow.text import Text
from sqlstream.compiler.flow.type_rules import contains, read_type
from sqlstream.compiler.graph import MODEL, STORED, kind_of, model_id, seed_id, source_id, stored_id
from sqlstream.compiler.rewrite.data_tests import conditions, kept_rows, offset_of_test, rows_where, written
from sqlstream.compiler.rewrite.deduplicate import key_columns, note_offset
from sqlstream.compiler.rules.query import Query
from sqlstream.compiler.rules.streams import endless_state
from sqlstream.compiler.rules.streams.state import ENDLESS
from sqlstream.compiler.spark_versions import knows_functions, rules_apply
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.compiler.sql.grammar import bracket_problems, grammar_problems
from sqlstream.compiler.sql.sql_text import quote_identifier, read_sql, view_name
from sqlstream.compiler.sql.sqlglot_tree import ParsedSql, parse_text
from sqlstream.compiler.sql.tokens import SqlTokenError
from sqlstream.project.values import Project
from sqlstream.project.wording import did_you_mean, given

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest  # few projects need its documents


class Forest:
    """The trees of the models of a project, and their `summaries` by unique id, which it completes. It builds only the
    trees that are asked for, and what they read, and stores new summaries in `cached`.
    """

    def __init__(
        self,
        project: Project,
        models: Mapping[str, CompiledModel],
        summaries: dict[str, ModelSummary],
        cached: Mapping[str, CachedModel],
    ) -> None:
        self._models = models
        self._found = summaries
        self._cached = cached
        self._knows_functions = knows_functions(project.target)
        self._function_types = {function.name.lower(): read_type(function.returns) for function in project.functions}
        read = {item.node_id for model in models.values() for item in model.reads}
        tables = {node: table for table in project.sources if (node := source_id(project.name, table)) in read}
        seeds = {node: seed for seed in project.seeds if (node := seed_id(project.name, seed.name)) in read}
        self._leaves: dict[str, Callable[[], Node]] = {
            **{node: partial(source_node, project.name, table) for node, table in tables.items()},
            **{node: partial(seed_node, project.name, seed) for node, seed in seeds.items()},
        }
        self._views: dict[str, Node] = {}
        self._order = {node: position for position, node in enumerate(models)}
        for model in (model for model in models.values() if model.config.is_stored):
            node = stored_id(project.name, model.name)
            self._leaves[node] = partial(self._stored_node, model, node)

    def _stored_node(self, model: CompiledModel, node: str) -> Node:
        return stored_node(node, self.found(model.unique_id).columns, stream=model.streams_when_stored)

    def found(self, unique_id: str) -> ModelSummary:
        """Returns the summary of a model."""
        if unique_id not in self._found:
            self._build(unique_id)
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
        model = self._models[unique_id]
        if model.file.is_python:
            self._build_python(model)
            return
        known = self._models.keys() | self._leaves.keys()
        read = {item.view.lower(): self.view(item.node_id) for item in model.reads if item.node_id in known}
        text = Text(model.unique_id, model.sql)
        builder = Builder(text, parse_text(text.read), self._knows_functions, self._function_types)
        try:
            tree = builder.build(read)
        except (RecursionError, TooManyJoinsError):  # hundreds of combined queries are no error
            builder = replace(builder, parsed=ParsedSql(None), problems=[])
            tree = builder.build(read)
        tree, wrong = _deduplicated(model, tree)
        beside = _Conditions()
        tree = self._tested(model, tree, beside)
        self._check(model, tree, beside)
        wrong = (*wrong, *beside.problems)
        problems = dict.fromkeys([*grammar_problems(text.read, set(read)), *builder.problems, *wrong])
        parsed = builder.parsed
        is_read, is_doubtful = parsed.tree is not None, parsed.is_doubtful or beside.is_doubtful
        found = ModelSummary(tree.columns, tuple(problems), is_read, parsed.unread_at, is_doubtful)
        self._views[unique_id], self._found[unique_id] = _view(tree), found
        if unique_id in self._cached:
            self._cached[unique_id].note(summary=found)
        text.release()

    def _tested(self, model: CompiledModel, tree: Node, found: _Conditions) -> Node:
        """Returns `tree` with a filter for the data tests that leave rows out. Adds what is found about all data tests,
        whose places are in the notes in the compiled SQL.
        """
        readable = []
        for test in model.file.data_tests:
            offset = offset_of_test(model.sql, test)
            if test.is_generic and test.is_of_table:
                found.add(self._query(model, tree, test, offset), offset)
            elif found.can_read(conditions(test), f"the data test `{test.name}` cannot be read", offset):
                builder, _ = self._filtered(model, tree, written(test), offset)
                found.add(builder, offset)
                found.problems += _test_problems(builder.text, test.name, offset)
                readable.append(test)
        dropping = [test for test in readable if test.leaves_out]
        if dropping:
            offset = offset_of_test(model.sql, dropping[0])
            _, tree = self._filtered(model, tree, " and ".join(kept_rows(dropping)), offset)
        return tree

    def _check(self, model: CompiledModel, tree: Node, found: _Conditions) -> None:
        """Adds what is found about the expressions of `check` constraints on the rows of `tree`."""
        for offset, constraint in model.checks:
            expression = constraint.expression or ""
            if found.can_read([expression], f"a check constraint of `{model.name}` cannot be read", offset):
                builder, _ = self._filtered(model, tree, expression, offset)
                found.add(builder, offset)

    def _query(self, model: CompiledModel, tree: Node, test: DataTest, offset: int) -> Builder:
        """Returns the query of a generic test, which only `sqlstream test --data` runs. The columns of the other tables
        that it reads are not looked up: they may be those of models that read this one.
        """
        text = Text(model.unique_id, f"{'':{offset}}{test.query}")
        builder = Builder(text, parse_text(text.read), self._knows_functions, self._function_types)
        unknown = Opaque(where=Where(model.unique_id, offset), columns=None, children=())
        read: dict[str, Node] = {view_name(each.parts).lower(): unknown for each in test.references}
        read[model.name.lower()] = _view(tree)
        builder.build(read)
        text.release()
        return builder

    def _filtered(self, model: CompiledModel, tree: Node, condition: str, offset: int) -> tuple[Builder, Node]:
        """Returns the rows of `tree` that meet a condition, as a query with the condition at `offset`."""
        sql, before = (rows_where(quote_identifier(model.name), each) for each in (condition, ""))
        text = Text(model.unique_id, f"{'':{max(offset - len(before) + 1, 0)}}{sql}")
        builder = Builder(text, parse_text(text.read), self._knows_functions, self._function_types)
        rows = builder.build({model.name.lower(): _view(tree)})
        text.release()
        return builder, rows

    def _build_python(self, model: CompiledModel) -> None:
        """Builds the tree of a Python model: unknown rows that depend on all its inputs."""
        inputs = tuple(self.view(node) for node in dict.fromkeys(read.node_id for read in model.reads))
        rows = Opaque(where=Where(model.unique_id, 0), columns=None, children=inputs)
        tree, _ = _deduplicated(model, rows)  # finds no problem in unknown columns
        self._views[model.unique_id] = _view(tree)


@dataclass
class _Conditions:
    """What is found about the SQL of data tests and constraints: the problems, and whether only Spark's parser can say
    that it is valid.
    """

    problems: list[SqlProblem] = field(default_factory=list)
    is_doubtful: bool = False

    def can_read(self, conditions: Iterable[str], what: str, offset: int) -> bool:
        """Returns whether each condition, which begins at `offset`, has an end and closes the brackets that it opens.
        `what` says what cannot be read otherwise.
        """
        found = next(filter(None, (list(_unreadable(each, what, offset)) for each in conditions)), [])
        self.problems += found
        self.is_doubtful |= bool(found)
        return not found

    def add(self, builder: Builder, offset: int) -> None:
        """Adds what is found about a query with a condition, which begins at `offset`."""
        problems = [*grammar_problems(builder.text.read), *builder.problems]
        self.problems += [replace(each, offset=max(each.offset, offset)) for each in problems]
        self.is_doubtful |= builder.parsed.tree is None or builder.parsed.is_doubtful


def _unreadable(condition: str, what: str, offset: int) -> Iterator[SqlProblem]:
    """Yields why a condition, which begins at `offset`, cannot stand within other SQL: `what` cannot be read then."""
    try:
        tokens = read_sql(condition).tokens
    except SqlTokenError as error:
        why, fix = f"{error.message}: {given(condition[error.offset :])}", "close it, or remove it"
        yield SqlProblem(offset, "sql-syntax", what, why, fix)
        return
    if not tokens:
        fix = "write a condition, such as `amount >= 0`, or remove it"
        yield SqlProblem(offset, "sql-syntax", what, "its condition is empty", fix)
    yield from (replace(each, offset=offset) for each in bracket_problems(tokens))


def _test_problems(text: Text, test: str, offset: int) -> Iterator[SqlProblem]:
    """Yields the problems of a data test, beside those of every condition."""
    if text.read.keys["SELECT"] > 1:
        what = f"the data test `{test}` has a query"
        why = "Spark counts violations while rows flow, without other queries"
        yield SqlProblem(offset, "data-test", what, why, "join the other table in the model, and test its column")
    if text.may_call(RANDOM):
        what, why = (
            f"the data test `{test}` is random",
            "the rows that count as violations would not be those that it drops",
        )
        yield SqlProblem(offset, "data-test", what, why, "compute the random value in the model")


def _view(tree: Node) -> Node:
    return View(where=tree.where, columns=tree.columns, children=(tree,))


def _deduplicated(model: CompiledModel, tree: Node) -> tuple[Node, tuple[SqlProblem, ...]]:
    """Returns `tree` with the operator of `deduplicate` on top, and the problems of its columns.

    Their place is the note in the compiled SQL that leads to the configuration.
    """
    if not model.config.deduplicate:
        return tree, ()
    here = Where(model.unique_id, note_offset(model.sql))
    keys = key_columns(model.config.deduplicate)
    node = Deduplicate(where=here, columns=tree.columns, children=(tree,), keys=keys, within=_within(tree.columns))
    return node, tuple(_key_problems(model, node))


def _within(columns: Columns | None) -> bool | None:
    if columns is None or (not any(item.event_time for item in columns) and any(item.may_carry for item in columns)):
        return None
    return any(item.event_time is not None for item in columns)


def _key_problems(model: CompiledModel, node: Deduplicate) -> Iterator[SqlProblem]:
    columns, offset = node.columns or (), node.where.offset
    types = {column.name.lower(): column.type for column in columns}
    compares_maps = node.streaming and node.within is not False  # as bytes, in the state store
    for key in node.keys if columns else ():
        if key.lower() not in types:
            what = f"`{model.name}` is deduplicated by `{key}`, which is not one of its columns"
            why = f"the columns of the model are {', '.join(f'`{column.name}`' for column in columns)}"
            fix = did_you_mean(key, [column.name for column in columns])
            yield SqlProblem(offset, "unknown-column", what, why, fix)
        elif not compares_maps and contains(types[key.lower()], "map"):
            what = f"`{model.name}` cannot be deduplicated by `{key}`, which is or contains a map"
            why = "map entries have no order, so Spark cannot compare maps"
            fix = f"select a text column, for example to_json({quote_identifier(key)}), and deduplicate by it"
            yield SqlProblem(offset, "type-mismatch", what, why, fix)


def emission_of_query(compiled: CompiledProject, model: CompiledModel) -> Emission:
    """Returns when the query of the terminal model `model` emits its rows."""
    return explain_emission(model, _tree(compiled, model), compiled.project.target.spark)


def reads_of_query(compiled: CompiledProject, model: CompiledModel) -> tuple[ModelRead, ...]:
    """Returns how the query of the terminal model `model` gets the rows of each model that it reads."""
    return explain_reads(compiled, model, _tree(compiled, model))


def keeps_state(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the query of `model` keeps state. Of code in Python it says yes."""
    upstream = compiled.upstream(model.unique_id) | {model.unique_id}
    if any(compiled.models[node].file.is_python for node in upstream if node in compiled.models):
        return True
    return any(kept_state(operator) for operator in _tree(compiled, model).walk())


def state_never_shrinks(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the state of the query of `model` grows with every new key, without a comment in its file that
    allows this because there are few. Of what the compiler does not understand it says no.
    """
    if not rules_apply(compiled.project.target):
        return False
    problems = endless_state(Query(compiled, model, _tree(compiled, model)))
    files = {problem.where.model: compiled.models[problem.where.model].file for problem in problems}
    return any(not allows(file, ENDLESS) for file in files.values())


def is_followed(compiled: CompiledProject, model: CompiledModel) -> bool:
    """Returns whether the compiler understands all SQL of the query of `model`."""
    return not any(isinstance(operator, Opaque) for operator in _tree(compiled, model).walk())


def _tree(compiled: CompiledProject, model: CompiledModel) -> Node:
    upstream = compiled.graph.ancestors(model.unique_id) | {model.unique_id}
    models = {node: item for node, item in compiled.models.items() if node in upstream}
    return Forest(compiled.project, models, {}, {}).tree(model.unique_id)


Origins = frozenset[tuple[str, str]]


def direct_origins(compiled: CompiledProject, chosen: Collection[str]) -> Mapping[str, Mapping[str, Origins]]:
    """Returns, by unique id and column, the (node id, column) of the inputs from which the models `chosen` compute it.

    Columns of an analysis have their origins in sources; these are one step back, which documentation shows. A stored
    output counts as its model. Models whose columns are unknown have none.
    """
    return {
        unique_id: _origins(compiled, model)
        for unique_id, model in compiled.models.items()
        if unique_id in chosen and compiled.columns.get(unique_id) is not None
    }


def _origins(compiled: CompiledProject, model: CompiledModel) -> Mapping[str, Origins]:
    known = compiled.columns[model.unique_id] or ()
    if not any(kind_of(read.node_id) in (MODEL, STORED) for read in model.reads):
        return {column.name: column.origins for column in known}  # its inputs are the sources themselves
    found = None if model.file.is_python else _columns_over_inputs(compiled, model)
    names = {column.name for column in known}
    return {column.name: column.origins for column in found or () if column.name in names}


def _columns_over_inputs(compiled: CompiledProject, model: CompiledModel) -> tuple[Column, ...] | None:
    functions = {function.name.lower(): read_type(function.returns) for function in compiled.project.functions}
    text = Text(model.unique_id, model.sql)
    try:
        tree = Builder(text, parse_text(text.read), knows_functions=False, functions=functions).build(
            {read.view.lower(): _input(compiled, read.node_id) for read in model.reads}
        )
    except (RecursionError, TooManyJoinsError):  # hundreds of combined queries
        return None
    finally:
        text.release()
    return tree.columns


def _input(compiled: CompiledProject, node_id: str) -> Node:
    """Returns the rows of an input as a leaf, whose columns have themselves as origin."""
    node = model_id(compiled.project.name, node_id.split(".")[-1]) if kind_of(node_id) == STORED else node_id
    fields = compiled.known_columns(node_id)
    marks = {column.name: column for column in compiled.columns.get(node) or ()}
    columns = None
    if fields is not None:
        empty = Column("")
        columns = tuple(
            replace(
                marks.get(field.name, empty), name=field.name, type=field.type, origins=frozenset({(node, field.name)})
            )
            for field in fields
        )
    return Scan(where=Where(node, 0), columns=columns, node_id=node, stream=True)
