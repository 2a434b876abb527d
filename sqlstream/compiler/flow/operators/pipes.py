"""Builds the operators of the stages of pipe syntax, each over the rows of the stage before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns, Where
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.names.problems import grouping_problem, stage_problem
from sqlstream.compiler.flow.names.scope import ResolvedName, Scope, ScopedRelation, UnresolvedName
from sqlstream.compiler.flow.nodes import Node, Opaque, Projection
from sqlstream.compiler.flow.operators.relations import From
from sqlstream.compiler.flow.text import name_parts
from sqlstream.compiler.sql.pipe_stages import PipeStage

Qualified = list[tuple[str | None, Column]]
"""Columns with the name of the relation that they come from unchanged, which later stages can use as a qualifier."""


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
            tree.set("expressions", [exp.Star(), *tree.expressions])
        if stage.keyword == "AGGREGATE":
            tree = self._aggregate(found, stage, tree)
        node, inner = self.select(tree, found)
        if stage.keyword not in ("SELECT", "EXTEND", "AGGREGATE"):
            return From(node, inner.scope)
        if stage.keyword == "EXTEND" and node.columns is not None:
            kept = sum(len(item.columns or ()) - len(item.merged) for item in inner.scope.relations)
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
