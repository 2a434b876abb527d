"""How Spark joins a LATERAL subquery: directly, or after an aggregation of the rows before it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions.known import GENERATORS
from sqlstream.compiler.flow.names.scope import ResolvedName, Scope, UnresolvedName
from sqlstream.compiler.flow.operators.joins import conjuncts
from sqlstream.compiler.flow.text import name_parts
from sqlstream.project.types.types import DataType

_KEEPING = ("distinct", "group", "having", "limit", "offset", "qualify")
"""The clauses over which Spark cannot move a condition."""


@dataclass(frozen=True)
class _Conditions:
    """The outer columns in a WHERE: `all` of them, those `compared` with columns of the subquery except by an equality,
    and those that are the `same` as a column of the subquery.
    """

    all: Columns
    compared: Columns
    same: Columns


@dataclass(frozen=True)
class Laterals:
    """Reads LATERAL subqueries over the relations of `left`. `scope_of` returns the scope of a SELECT."""

    expressions: Expressions
    left: Scope
    scope_of: Callable[[exp.Select], Scope | None]

    def domain(self, body: exp.Expr, *, is_plain: bool) -> Columns | None:
        """Returns the columns of `left` by whose distinct values Spark evaluates the subquery; None if it is unknown.

        There are none if Spark can turn the subquery into a join or a projection: see DecorrelateInnerQuery and
        OptimizeOneRowRelationSubquery of Spark 4.3. `is_plain` means that the join has no condition.
        """
        body = body.this if isinstance(body, exp.Subquery) else body
        if is_plain and self._is_one_row(body):
            return ()
        if isinstance(body, exp.Select):
            return self._of_select(body)
        if isinstance(body, exp.SetOperation):
            return _together(self.domain(side, is_plain=False) for side in (body.this, body.expression))
        is_generator = self.expressions.text.function(body) in GENERATORS
        return self._outer(body, Scope()) if is_generator else None

    def _is_one_row(self, body: exp.Expr) -> bool:
        """Returns whether the subquery is a select list or a generator over only the row before LATERAL."""
        if not isinstance(body, exp.Query):
            return self.expressions.text.function(body) in GENERATORS
        clauses = {name for name, value in body.args.items() if value}
        if not isinstance(body, exp.Select) or clauses - {"expressions", "from_"}:
            return False
        if any(self.expressions.text.is_aggregate(item) or item.find(exp.Window) for item in body.expressions):
            return False
        source = body.args.get("from_")
        return source is None or (source.this.args.get("sample") is None and self._is_one_row(source.this.this))

    def _of_select(self, select: exp.Select) -> Columns | None:
        inner = self.scope_of(select)
        if inner is None or select.args.get("with_") or select.args.get("laterals"):
            return None
        inner = replace(inner, outer=None)
        listed = _together(self._outer(item, inner) for item in select.expressions)
        below = self._of_relations(select)
        conditions = None if listed is None or below is None else self._conditions(select, inner)
        if listed is None or below is None or conditions is None:
            return None
        aggregates = any(self.expressions.text.is_aggregate(item) for item in select.expressions)
        if aggregates and not select.args.get("group"):
            return (*listed, *below, *conditions.all)
        keeps = aggregates or any(select.args.get(name) for name in _KEEPING) or select.find(exp.Window)
        needed = (*listed, *below, *conditions.compared) if keeps else (*listed, *below)
        return tuple(column for column in needed if column not in conditions.same)

    def _of_relations(self, select: exp.Select) -> Columns | None:
        """Returns the columns of `left` that the relations of FROM need."""
        source = select.args.get("from_")
        joins = select.args.get("joins") or ()
        if any(join.args.get("on") and self._outer(join.args["on"], Scope()) != () for join in joins):
            return None
        relations = [*((source.this,) if source is not None else ()), *(join.this for join in joins)]
        return _together(map(self._of_relation, relations))

    def _of_relation(self, relation: exp.Expr) -> Columns | None:
        if isinstance(relation, exp.Subquery):
            return self.domain(relation, is_plain=False)
        if isinstance(relation, exp.Table) and isinstance(relation.this, exp.Func):
            return self._outer(relation.this, Scope())
        return () if isinstance(relation, exp.Table | exp.Values) else None

    def _conditions(self, select: exp.Select, inner: Scope) -> _Conditions | None:
        clause = select.args.get("where")
        parts = [(part, self._outer(part, inner)) for part in conjuncts(clause.this if clause is not None else None)]
        compared: list[Column] = []
        same: list[Column] = []
        for part, found in parts:
            tie = self._tie(part, inner)
            types = _types_of_columns(tie, found)
            if found is None or None in types:
                return None
            compared += found if tie is None and self._reads(part, inner) else ()
            same += found if len(types) == 1 else ()
        return _Conditions(_together(found for _, found in parts) or (), tuple(compared), tuple(same))

    def _tie(self, part: exp.Expr, inner: Scope) -> tuple[Column, exp.Expr] | None:
        """Returns the column of the subquery that must equal an expression of outer columns, and that expression."""
        sides = [part.this, part.expression] if isinstance(part, exp.EQ | exp.NullSafeEQ) else []
        for own, other in zip(sides, reversed(sides), strict=True):
            found = inner.resolve(name_parts(own))
            if isinstance(found, ResolvedName) and not found.fields and not self._reads(other, inner):
                return found.column, other
        return None

    def _reads(self, part: exp.Expr, inner: Scope) -> bool:
        return any(
            isinstance(inner.resolve(name), ResolvedName) for name, _ in self.expressions.text.parts_of(part).names
        )

    def _outer(self, node: exp.Expr, inner: Scope) -> Columns | None:
        """Returns the columns of `left` that `node` reads; None if they are unknown."""
        found: list[Column] = []
        if node.find(exp.Query):
            return None
        for name, _ in self.expressions.text.parts_of(node).names:
            here = inner.resolve(name)
            there = self.left.resolve(name) if isinstance(here, UnresolvedName) else None
            if here is None or (isinstance(here, UnresolvedName) and there is None):
                return None
            found += [there.column] if isinstance(there, ResolvedName) else []
        return tuple(found)


def _types_of_columns(tie: tuple[Column, exp.Expr] | None, outer: Columns | None) -> set[DataType | None]:
    """Returns the types of the two columns in an equality of columns; empty for other conditions."""
    if tie is None or outer is None or len(outer) != 1 or not name_parts(tie[1]):
        return set()
    return {tie[0].type, outer[0].type}


def _together(parts: Iterable[Columns | None]) -> Columns | None:
    found: Columns = ()
    for part in parts:
        if part is None:
            return None
        found = (*found, *part)
    return found
