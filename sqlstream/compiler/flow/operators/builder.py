"""Builds the operators of one query from its sqlglot tree: FROM, WHERE, GROUP BY, the select list, ORDER BY, and the
stages of pipe syntax.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns, renamed
from sqlstream.compiler.flow.expressions.checks import check_expression, foreign_syntax, unread_argument_problems
from sqlstream.compiler.flow.expressions.column import Expressions, Functions, Types
from sqlstream.compiler.flow.expressions.misplaced_functions import Clause
from sqlstream.compiler.flow.functions import AGGREGATES, GENERATORS, ROW_IDS
from sqlstream.compiler.flow.names import (
    ResolvedName,
    Scope,
    ScopedRelation,
    UnresolvedName,
    grouping_problem,
    stage_problem,
)
from sqlstream.compiler.flow.nodes import (
    Aggregate,
    Call,
    CteReference,
    Filter,
    Generate,
    Key,
    Limit,
    Node,
    Opaque,
    Projection,
    Recursion,
    Scan,
    SetOperation,
    Sort,
    With,
)
from sqlstream.compiler.flow.operators.from_clause import From, FromReader
from sqlstream.compiler.flow.operators.grouping import Grouping, grouping_of
from sqlstream.compiler.flow.operators.joins import hints_of, subquery_problems
from sqlstream.compiler.flow.operators.select_list import (
    SelectList,
    lists_all,
    set_problems,
    united_columns,
    with_window_functions,
)
from sqlstream.compiler.flow.operators.time_conditions import time_conditions
from sqlstream.compiler.flow.operators.time_windows import SelectChecks, limit_problems
from sqlstream.compiler.flow.text import Text, computed_items, name_parts
from sqlstream.compiler.sql.edits import SqlProblem, Where
from sqlstream.compiler.sql.spark_reading import PipeStage
from sqlstream.compiler.sql.sqlglot_tree import ParsedSql

Views = Mapping[str, Node]
"""The relations that a query can read, by name in lower case."""

Qualified = list[tuple[str | None, Column]]
"""Columns with the name of the relation that they come from unchanged, which later stages can use as a qualifier."""


@dataclass
class Builder:
    """Builds the operators of one text, and adds its errors to `problems`.

    `scopes` are those of each SELECT built so far, by the `id` of its tree. `types` are the types of its expressions.
    """

    text: Text
    parsed: ParsedSql
    knows_functions: bool = False
    functions: Functions = field(default_factory=dict)
    problems: list[SqlProblem] = field(default_factory=list)
    scopes: dict[int, Scope] = field(default_factory=dict)
    types: Types = field(default_factory=dict)

    def build(self, views: Views) -> Node:
        """Returns the tree of the text, which can read `views`."""
        if self.parsed.tree is None:
            self.problems.extend(unread_argument_problems(self.text))  # all that tokens alone can show
            return self._opaque(exp.Null(), tuple(views.values()))
        self.text.index(self.parsed.nodes)
        self.problems.extend(foreign_syntax(self.parsed.nodes, self.text))
        return self.query(self.parsed.tree, Scope(), views)

    def query(self, query: exp.Query, scope: Scope, views: Views) -> Node:
        """Returns the tree of a query inside `scope.outer`."""
        clause = query.args.get("with_")
        if clause is None:
            return self._piped(query, self._body(query, scope, views), views)
        inner = dict(views)
        for cte in clause.expressions:
            defined = self._definition(cte, clause, Scope(outer=scope.outer), inner)
            # each CTE can read those before it
            inner[cte.alias.lower()] = CteReference(where=defined.where, columns=defined.columns, children=(defined,))
        body = self._piped(query, self._body(query, scope, inner), inner)
        own = (inner[cte.alias.lower()].children[0] for cte in clause.expressions)
        return With(where=body.where, columns=body.columns, children=(body, *own))

    def _piped(self, query: exp.Query, node: Node, views: Views) -> Node:
        """Returns the rows of the outermost query after its stages in pipe syntax; other queries unchanged."""
        if query is not self.parsed.tree or not self.parsed.stages:
            return node

        def select(tree: exp.Select, found: From) -> tuple[Node, From]:
            onto = self._reader(self._expressions(views)).read_onto(found, tree, views)
            return self._over(tree, onto, views), onto

        def unite(tree: exp.SetOperation, left: Node) -> Node:
            return self._set_operation(tree, left, Scope(), views)

        pipes = Pipes(self._expressions(views), select, unite)
        found = pipes.start(query, node, self.scopes.get(id(query)))
        for stage in self.parsed.stages:
            found = pipes.add(found, stage)
        return found.node

    def _definition(self, cte: exp.CTE, clause: exp.With, scope: Scope, views: Views) -> Node:
        names = [column.name for column in cte.args["alias"].args.get("columns") or ()]
        if clause.args.get("recursive") and isinstance(cte.this, exp.Union) and _reads(cte.this, cte.alias):
            return self._recursion(cte.this, cte.alias, names, scope, views)
        node = self.query(cte.this, scope, views)
        # a new object, which differs from that of another CTE over the same rows
        return replace(node, columns=renamed(node.columns, names))

    def _recursion(self, union: exp.Union, name: str, names: Sequence[str], scope: Scope, views: Views) -> Node:
        """Returns a CTE that reads itself. It has the columns of its first query without their watermarks."""
        first = self.query(union.this, scope, views)
        found = renamed(first.columns, names)
        columns = None if found is None else tuple(Column(column.name, column.type) for column in found)
        where = self.text.where(union)
        itself = Scan(where=where, columns=columns, node_id=None, stream=False)
        step = self.query(union.expression, scope, {**views, name.lower(): itself})
        return Recursion(where=where, columns=columns, children=(first, step))

    def _body(self, query: exp.Query, scope: Scope, views: Views) -> Node:
        if isinstance(query, exp.Select):
            return self._select(query, scope, views)
        if isinstance(query, exp.SetOperation):
            node: Node = self._set_operation(query, self.query(query.this, scope, views), scope, views)
        elif isinstance(query, exp.Subquery) and isinstance(query.this, exp.Query):
            node = self.query(query.this, scope, views)
        else:
            node = self._opaque(query)
        return self._ordered(query, node, None)

    def _opaque(self, node: exp.Expr, children: tuple[Node, ...] = ()) -> Node:
        return Opaque(where=self.text.where(node), columns=None, children=children)

    def _expressions(self, views: Views) -> Expressions:
        return Expressions(
            self.text,
            self.problems,
            lambda query, scope: self._subquery(query, scope, views),
            self.knows_functions,
            self.types,
            self.functions,
        )

    def _subquery(self, query: exp.Query, scope: Scope, views: Views) -> Node:
        """Returns the tree of a query in an expression, whose names resolve in `scope.outer`."""
        node = self.query(query, scope, views)
        if scope.outer is not None:
            self.problems.extend(subquery_problems(query, node.columns, scope.outer, self._expressions(views)))
        return node

    def _select(self, select: exp.Select, scope: Scope, views: Views) -> Node:
        found = self._reader(self._expressions(views)).read(select, scope.outer, views)
        if found is None:
            found = From(Projection(where=self.text.where(select), columns=()), Scope(outer=scope.outer))
        return self._over(select, found, views)

    def _reader(self, expressions: Expressions) -> FromReader:
        return FromReader(self.parsed, expressions, self.query, lambda select: self.scopes.get(id(select)))

    def _over(self, select: exp.Select, found: From, views: Views) -> Node:
        """Returns the tree of a SELECT over the rows of its FROM."""
        expressions = self._expressions(views)
        self.scopes[id(select)] = found.scope
        node = self._filtered(found, select.args.get("where"), expressions)
        grouping = grouping_of(select, found.scope, expressions)
        inner = grouping.scope if grouping is not None else found.scope
        chosen = SelectList(select, inner, expressions)
        output = chosen.columns()
        node = self._generated(select, node, output)
        aggregate = self._aggregated(select, node, grouping, output, inner, expressions)
        checks = SelectChecks(select, found.scope, grouping, output, expressions)
        checks.run(is_aggregated=aggregate is not None)
        node = with_window_functions(select, aggregate or node, self.text)
        if node is not aggregate:
            queries = tuple(query for item in computed_items(select) for query in expressions.subqueries(item, inner))
            node = Projection(
                where=self.text.where(select),
                columns=output,
                children=(node,),
                subqueries=queries,
                part=self.text.part(select, inner),
                passes=lists_all(select),
            )
        if select.args.get("distinct"):
            node = _distinct(self.text.where(select), node)
        row_ids = self._row_ids(select, expressions)
        return self._ordered(select, replace(node, row_ids=row_ids) if row_ids else node, inner)

    def _row_ids(self, select: exp.Select, expressions: Expressions) -> tuple[Call, ...]:
        if not self.text.may_call(ROW_IDS):
            return ()
        clauses = [select.args.get(name) for name in ("where", "group", "having", "order")]
        parts = [*computed_items(select), *(select.args.get("laterals") or ()), *(item for item in clauses if item)]
        return tuple(call for part in parts for call in expressions.calls(part, ROW_IDS))

    def _filtered(self, found: From, clause: exp.Expr | None, expressions: Expressions) -> Node:
        if clause is None:
            return found.node
        check_expression(expressions, clause.this, found.scope, Clause.WHERE)
        queries = expressions.subqueries(clause.this, found.scope)
        return self._filter(clause, found, expressions, queries)

    def _filter(
        self,
        clause: exp.Expr,
        found: From,
        expressions: Expressions,
        queries: tuple[Node, ...] = (),
    ) -> Node:
        times, has_others = time_conditions(clause.this, found.scope, expressions)
        return Filter(
            where=self.text.where(clause),
            columns=found.node.columns,
            children=(found.node,),
            subqueries=queries,
            part=self.text.part(clause, found.scope),
            hints=hints_of(clause.this, found.inner),
            times=times,
            has_others=has_others,
        )

    def _generated(self, select: exp.Select, node: Node, output: Columns | None) -> Node:
        items = computed_items(select) if self.text.may_call(GENERATORS) else ()
        calls = (call for item in items for call in self.text.parts_of(item).functions)
        for part in (part for name, part in calls if name in GENERATORS):
            node = Generate(where=self.text.where(part), columns=output, children=(node,))
        return node

    def _aggregated(
        self,
        select: exp.Select,
        node: Node,
        grouping: Grouping | None,
        output: Columns | None,
        scope: Scope,
        expressions: Expressions,
    ) -> Node | None:
        """Returns the aggregation of GROUP BY, HAVING and aggregate functions; None if there are none of them."""
        having, group = select.args.get("having"), select.args.get("group")
        parts = [*computed_items(select), *([having.this] if having else [])]
        aggregates = [part for part in parts if self.text.is_aggregate(part)]
        if grouping is None and having is None and not aggregates:
            return None
        # a query in HAVING can use the names of the select list
        named = replace(scope, aliases={column.name.lower(): column for column in output or ()})
        first = group if group is not None and group.expressions else next(iter(aggregates), select)
        aggregate = Aggregate(
            where=self.text.where(first),
            columns=output,
            children=(node,),
            subqueries=tuple(query for part in parts for query in expressions.subqueries(part, named)),
            part=self.text.part(select, scope),
            keys=grouping.keys if grouping else (),
            functions=tuple(call for part in parts for call in expressions.calls(part, AGGREGATES)),
            session=grouping.session if grouping else False,
        )
        if having is None:
            return aggregate
        return self._filter(having, From(aggregate, named), expressions)

    def _set_operation(self, query: exp.SetOperation, left: Node, scope: Scope, views: Views) -> Node:
        right = self.query(query.expression, scope, views)
        kind = type(query).__name__.lower()
        by_name = bool(query.args.get("by_name"))
        where = self.text.where(query.expression)
        self.problems.extend(set_problems(left.columns, right.columns, where.offset, by_name=by_name))
        columns = None if by_name and left.columns != right.columns else united_columns(left.columns, right.columns)
        node = SetOperation(where=where, columns=columns, children=(left, right), kind=kind)
        return _distinct(where, node) if kind == "union" and query.args.get("distinct") else node

    def _ordered(self, query: exp.Expr, node: Node, scope: Scope | None) -> Node:
        """Returns `node` with ORDER BY, SORT BY, LIMIT and OFFSET on top."""
        for name in ("order", "sort", "cluster"):
            clause = query.args.get(name)
            if clause is not None:
                self._check_order(clause, node, scope)
                node = Sort(where=self.text.where(clause), columns=node.columns, children=(node,))
        for name, is_offset in (("offset", True), ("limit", False)):  # LIMIT counts the rows after OFFSET
            clause = query.args.get(name)
            if clause is not None and clause.expression.name.upper() != "ALL":
                self.problems.extend(limit_problems(name, clause.expression, self._expressions({})))
                where = self.text.where(clause)
                node = Limit(where=where, columns=node.columns, children=(node,), is_offset=is_offset)
        return node

    def _check_order(self, clause: exp.Expr, node: Node, scope: Scope | None) -> None:
        """Adds the problems of names that are neither in the select list nor in FROM."""
        output = Scope((ScopedRelation(None, node.columns),))
        for part in clause.find_all(exp.Column):
            parts = name_parts(part)
            missing = parts and isinstance(output.resolve(parts), UnresolvedName)
            if missing and scope is not None and isinstance(scope.resolve(parts), UnresolvedName):
                self._expressions({}).check(part, scope)


def _reads(query: exp.Query, name: str) -> bool:
    """Returns whether a query reads a relation with this name."""
    return any(table.name.lower() == name.lower() and not table.args.get("db") for table in query.find_all(exp.Table))


def _distinct(where: Where, node: Node) -> Node:
    keys = tuple(Key(column.name, column, True, node.where) for column in node.columns or ())
    return Aggregate(where=where, columns=node.columns, children=(node,), keys=keys, kind="distinct")


@dataclass(frozen=True)
class Pipes:
    """Adds stages to the rows so far.

    `select` builds a SELECT over them, and also returns the relations after its FROM. `unite` builds a set operation
    with them as the first query.
    """

    expressions: Expressions
    select: Callable[[exp.Select, From], tuple[Node, From]]
    unite: Callable[[exp.SetOperation, Node], Node]

    def start(self, head: exp.Query, node: Node, scope: Scope | None) -> From:
        """Returns the rows of the query before the first stage. `scope` is that of its FROM; None if it has none."""
        if isinstance(head, exp.Select) and scope is not None and not head.args.get("group"):
            return From(node, self._after(head.expressions, node.columns, scope))
        return From(node, _open(node.columns))

    def add(self, found: From, stage: PipeStage) -> From:
        """Returns the rows of `stage` over those in `found`."""
        if stage.keyword == "AS" and stage.name:
            return From(found.node, Scope((ScopedRelation(stage.name, found.node.columns),)))
        if isinstance(stage.tree, exp.SetOperation):
            node = self.unite(stage.tree, found.node)
            return From(node, _open(node.columns))
        if isinstance(stage.tree, exp.Select) and stage.keys is not None:
            if stage.keyword in ("SET", "DROP"):
                return self._changed(found, stage, stage.tree)
            return self._selected(found, stage, stage.tree)
        if stage.keyword == "LATERAL":
            self.expressions.problems.append(stage_problem(stage.keyword, stage.start))
        where = Where(self.expressions.text.model, stage.start)
        return From(Opaque(where=where, columns=None, children=(found.node,)), _open(None))

    def _selected(self, found: From, stage: PipeStage, tree: exp.Select) -> From:
        if stage.keyword == "EXTEND":
            tree = tree.copy()
            tree.set("expressions", [exp.Star(), *tree.expressions])  # EXTEND x is SELECT *, x
        if stage.keyword == "AGGREGATE":
            tree = self._aggregate(found, stage, tree)
        node, inner = self.select(tree, found)
        if stage.keyword not in ("SELECT", "EXTEND", "AGGREGATE"):
            return From(node, inner.scope)
        if stage.keyword == "EXTEND" and node.columns is not None:
            kept = sum(len(item.columns or ()) - len(item.merged) for item in inner.scope.relations)  # those of *
            return From(node, inner.scope.with_relations(ScopedRelation(None, node.columns[kept:])))
        return From(node, self._after(tree.expressions, node.columns, inner.scope))

    def _aggregate(self, found: From, stage: PipeStage, tree: exp.Select) -> exp.Select:
        """Returns a SELECT of the keys and aggregates, grouped by the keys; a number is the position of a column."""
        keys = [self._key(found, key) for key in stage.keys or ()]
        text = self.expressions.text
        for item in (item for item in tree.expressions if not text.is_aggregate(item)):
            problem = grouping_problem(
                text.written(item.unalias()), list(map(text.written, keys)), text.where(item).offset
            )
            self.expressions.problems.append(problem)
        grouped = exp.Select()
        grouped.set("expressions", [*(key.copy() for key in keys), *(item.copy() for item in tree.expressions)])
        if keys:
            grouped.set("group", exp.Group(expressions=[key.unalias().copy() for key in keys]))
        return grouped

    def _key(self, found: From, key: exp.Expr) -> exp.Expr:
        columns = found.node.columns or ()
        is_number = isinstance(key, exp.Literal) and not key.is_string and key.name.isdigit()
        place = int(key.name) if is_number else 0
        return exp.column(columns[place - 1].name, quoted=True) if 0 < place <= len(columns) else key

    def _changed(self, found: From, stage: PipeStage, tree: exp.Select) -> From:
        """Returns the rows after SET, which changes columns one after the other, or DROP, which removes them."""
        pairs = _pairs(found.scope)
        where = Where(self.expressions.text.model, stage.start)
        for item in tree.expressions:
            name = item.this if stage.keyword == "SET" and isinstance(item, exp.EQ) else item
            self.expressions.check(name, found.scope)
            meant = found.scope.resolve(name_parts(name))
            value = None
            if name is not item:
                self.expressions.check(item.expression, found.scope)
                value = self.expressions.column(item.expression, found.scope, name.name)
            if isinstance(meant, ResolvedName) and pairs is not None:
                pairs = _replaced(pairs, meant.column.name, value)
            scope = _open(None) if pairs is None else Scope(_runs(pairs))
            found = From(found.node, scope if not isinstance(meant, UnresolvedName) else found.scope)
        columns = None if pairs is None else tuple(column for _, column in pairs)
        return From(Projection(where=where, columns=columns, children=(found.node,)), found.scope)

    def _after(self, items: Sequence[exp.Expr], columns: Columns | None, scope: Scope) -> Scope:
        """Returns the scope after a select list, in which unchanged columns keep the name of their relation."""
        pairs: Qualified = []
        for item in items:
            found = scope.resolve(name_parts(item))
            if isinstance(item, exp.Star) and not item.args.get("except_"):
                pairs += _pairs(scope) or []
            elif isinstance(found, ResolvedName) and not found.fields:
                pairs.append((_relation(scope, found.column), found.column))
            else:
                pairs.append((None, Column("")))
        if columns is None or len(pairs) != len(columns):
            return _open(columns)
        runs = _runs([(name, column) for (name, _), column in zip(pairs, columns, strict=True)])
        # the same attribute before and after others is not ambiguous, but two relations would be
        same = [(run.name, column) for run in runs for column in set(map(id, run.columns or ()))]
        return Scope(runs) if len(same) == len(set(same)) else _open(columns)


def _open(columns: Columns | None) -> Scope:
    """Returns a scope in which the names of relations are unknown, so that any qualifier may be correct."""
    return Scope((ScopedRelation(None, columns, qualifiers_known=False),))


def _pairs(scope: Scope) -> Qualified | None:
    if any(item.columns is None or not item.qualifiers_known for item in scope.relations):
        return None
    return [(item.name, column) for item in scope.relations for column in item.listed or ()]


def _runs(pairs: Qualified) -> tuple[ScopedRelation, ...]:
    """Returns relations with the columns in order. Several of them can have the same name."""
    found: list[ScopedRelation] = []
    for name, column in pairs:
        if found and found[-1].name == name:
            found[-1] = replace(found[-1], columns=(*(found[-1].columns or ()), column))
        else:
            found.append(ScopedRelation(name, (column,)))
    return tuple(found)


def _relation(scope: Scope, column: Column) -> str | None:
    return next((item.name for item in scope.relations if any(column is own for own in item.columns or ())), None)


def _replaced(pairs: Qualified, name: str, value: Column | None) -> Qualified:
    kept = ((qualifier, column) if column.name != name else (None, value) for qualifier, column in pairs)
    return [(qualifier, column) for qualifier, column in kept if column is not None]
