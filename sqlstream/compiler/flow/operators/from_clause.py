"""Builds the operators of FROM: its relations with their joins, LATERAL and watermarks, and their scope."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns, EventTime, renamed
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.misplaced_functions import (
    Clause,
    constant_problems,
    lateral_view_problems,
    range_problems,
)
from sqlstream.compiler.flow.functions import GENERATORS
from sqlstream.compiler.flow.names import (
    Ambiguous,
    ResolvedName,
    Scope,
    ScopedRelation,
    UnresolvedName,
    name_problem,
    negative_delay,
    version_problem,
)
from sqlstream.compiler.flow.nodes import (
    EventTimeWatermark,
    Generate,
    Join,
    LateralJoin,
    Limit,
    Node,
    Scan,
    TableSample,
    TimeCondition,
    open_source,
)
from sqlstream.compiler.flow.operators.joins import (
    Sides,
    bounded_sides,
    clock_in,
    condition_problems,
    conjuncts,
    has_equality,
    hints_of,
    join_kind,
    time_keys,
    using_problems,
)
from sqlstream.compiler.flow.operators.pivots import Pivots
from sqlstream.compiler.flow.operators.time_conditions import time_conditions
from sqlstream.compiler.flow.text import name_parts
from sqlstream.compiler.flow.type_rules import BIGINT, TIMESTAMP
from sqlstream.compiler.sql.edits import Where
from sqlstream.compiler.sql.intervals import read_span
from sqlstream.compiler.sql.sqlglot_tree import FIRST_SAMPLE, ParsedSql, WatermarkClause
from sqlstream.project.types.data_types import DataType

MOST_JOINS = 1_000
"""The most joins in one FROM that are followed: each has the columns of all before it. Spark cannot plan as many."""


class TooManyJoinsError(Exception):
    """A FROM has more than `MOST_JOINS` joins."""


@dataclass(frozen=True)
class From:
    """The relations of a FROM so far: their tree, and the scope for expressions over them."""

    node: Node
    scope: Scope
    inner: Sides | None = None


@dataclass(frozen=True)
class FromReader:
    """Reads the FROM clauses of one text.

    `open_query` builds the tree of a subquery, and `scope_of` returns the scope of a SELECT that is already built. In
    the methods, `views` are the relations by name.
    """

    parsed: ParsedSql
    expressions: Expressions
    open_query: Callable[[exp.Query, Scope, Mapping[str, Node]], Node]
    scope_of: Callable[[exp.Select], Scope | None]

    def read(self, select: exp.Select, outer: Scope | None, views: Mapping[str, Node]) -> From | None:
        """Returns the relations in the FROM of `select`; None if it has no FROM."""
        clause = select.args.get("from_")
        if clause is None:
            return None
        found = self._relation(clause.this, Scope(outer=outer), views)
        return self._joined(found, select, views)

    def read_onto(self, found: From, select: exp.Select, views: Mapping[str, Node]) -> From:
        """Returns the relations in the FROM of `select`, whose first table is a placeholder for `found`."""
        clause = select.args.get("from_")
        if clause is not None and clause.this.args.get("pivots"):
            rows, name = self._pivoted(found.node, clause.this, None)
            found = From(rows, Scope((ScopedRelation(name, rows.columns, qualifiers_known=name is not None),)))
        elif clause is not None:
            found = From(self._sampled(found.node, clause.this), found.scope)
        return self._joined(found, select, views)

    def _joined(self, found: From, select: exp.Select, views: Mapping[str, Node]) -> From:
        joins = select.args.get("joins") or ()
        if len(joins) > MOST_JOINS:
            raise TooManyJoinsError
        for join in joins:
            found = self._join(found, join, views)
        for lateral in select.args.get("laterals") or ():
            found = self._lateral(found, lateral, views)
        return found

    def _pivoted(self, rows: Node, node: exp.Expr, name: str | None) -> tuple[Node, str | None]:
        """Returns the rows of a relation after its PIVOT or UNPIVOT, and their relation name."""
        for pivot in node.args.get("pivots") or ():
            rows = Pivots(self.expressions, Scope((ScopedRelation(name, rows.columns),))).over(rows, pivot)
            name = pivot.alias or name
        return rows, name

    def _relation(self, node: exp.Expr, scope: Scope, views: Mapping[str, Node]) -> From:
        """Returns one relation with its own joins, alias, sample and watermark."""
        if isinstance(node, exp.Paren) or (isinstance(node, exp.Subquery) and _is_relation(node.this)):
            found = self._relation(node.this, scope, views)
        else:
            found = From(self._rows(node, scope, views), scope)
        alias = node.args.get("alias")
        name = alias.name if isinstance(alias, exp.TableAlias) and alias.this else node.name or None
        rows = _renamed(found.node, alias)
        rows, name = self._pivoted(rows, node, name)
        rows = self._sampled(rows, node)
        clause = self._clause(node, alias)
        if clause is not None:
            rows = self._watermark(rows, clause, name)
        # `(a join b)` keeps the names of its relations, `(a join b) as t` does not
        parenthesised = found.scope.relations and not (alias and alias.this)
        is_whole = rows.columns is found.node.columns or clause is not None
        origin = found.node.where if is_whole else self.expressions.text.where(node)
        visible = ScopedRelation(name, rows.columns, open_source=open_source(rows), origin=origin)
        seen = found.scope if parenthesised else Scope((visible,), scope.aliases, scope.outer)
        result = From(rows, seen)
        for join in node.args.get("joins") or ():
            result = self._join(result, join, views)
        return result

    def _rows(self, node: exp.Expr, scope: Scope, views: Mapping[str, Node]) -> Node:
        where = self.expressions.text.where(node)
        self.expressions.problems.extend(constant_problems(node, self.expressions.text))
        if isinstance(node, exp.Subquery):
            return self.open_query(node.this, Scope(outer=scope.outer), views)
        columns: Columns | None = None
        is_table = isinstance(node, exp.Table)
        if is_table and isinstance(node.this, exp.Identifier):
            known = None if node.args.get("db") else views.get(node.name.lower())
            if known is not None and node.args.get("version"):
                self.expressions.problems.append(version_problem(where.offset))
            return known or Scan(where=where, columns=None, node_id=None, stream=False)  # a table of a catalog
        if is_table and isinstance(node.this, exp.Anonymous) and node.this.name.lower() == "range":
            self.expressions.problems.extend(range_problems(node.this, self.expressions.text))
            columns = (Column("id", BIGINT),)
        elif self.expressions.text.function(node.this) in GENERATORS:
            columns = self.expressions.generated(node.this, Scope(outer=scope.outer), ())
        return Scan(where=where, columns=columns, node_id=None, stream=False)

    def _sampled(self, rows: Node, node: exp.Expr) -> Node:
        sample = node.args.get("sample")
        if sample is None or _marker(sample) is not None:
            return rows
        where = self.expressions.text.where(node)
        if sample.args.get("size"):
            return Limit(where=where, columns=rows.columns, children=(rows,), is_offset=False)  # as Spark plans ROWS
        return TableSample(where=where, columns=rows.columns, children=(rows,))

    def _clause(self, node: exp.Expr, alias: exp.Expr | None) -> WatermarkClause | None:
        """Returns the watermark clause of a relation. `ParsedSql` describes the keys."""
        keys: list[int | None] = [_marker(node.args["sample"])] if node.args.get("sample") else []
        if isinstance(alias, exp.TableAlias) and alias.this:
            keys.append(alias.this.meta.get("start"))
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            keys.append(node.this.meta.get("start"))
        clauses = [self.parsed.watermarks.get(key) for key in keys if key is not None]
        return next((clause for clause in clauses if clause is not None), None)

    def _watermark(self, rows: Node, clause: WatermarkClause, name: str | None) -> Node:
        """Returns the rows with the watermark of `clause`, which replaces any other."""
        model = self.expressions.text.model
        where = Where(model, clause.start)
        time = EventTime(clause.delay, where)
        span = read_span(clause.delay.replace("'", " ").replace('"', " "))  # INTERVAL '1' HOUR has quotes inside
        if span is not None and span.is_negative:
            self.expressions.problems.append(negative_delay(clause.delay, clause.start))
        parts = tuple(part.strip().strip("`") for part in clause.expression.split("."))
        visible = ScopedRelation(name, rows.columns, origin=rows.where)
        found = Scope((visible,)).resolve(parts) if clause.name is None else None
        if isinstance(found, UnresolvedName | Ambiguous):
            self.expressions.problems.append(name_problem(found, parts, Where(model, clause.expression_start)))
        marked = found.column.name if isinstance(found, ResolvedName) and not found.fields else None
        columns = rows.columns
        if columns is not None:
            columns = tuple(replace(c, event_time=time if c.name == marked else None) for c in columns)
            if marked is None:  # the clause computes a new column
                columns = (*columns, Column(clause.name or parts[-1], TIMESTAMP, time))
        named = marked or clause.name or parts[-1]
        return EventTimeWatermark(where=where, columns=columns, children=(rows,), event_time=time, column=named)

    def _join(self, left: From, join: exp.Join, views: Mapping[str, Node]) -> From:
        if isinstance(join.this, exp.Lateral):
            return self._lateral_join(left, join, views)
        right = self._relation(join.this, Scope(outer=left.scope.outer), views)
        right = replace(right, scope=replace(right.scope, relations=_apart(right.scope.relations, left.scope)))
        kind, where = join_kind(join, self.expressions.text), self.expressions.text.where(join)
        using = [column.name.lower() for column in join.args.get("using") or ()]
        if (join.args.get("method") or "").upper() == "NATURAL":
            using = _common(left.node.columns, right.node.columns)
        scope, sides = _merged(left.scope, right.scope, kind, using), Sides(left.scope, right.scope)
        condition = join.args.get("on")
        times: tuple[TimeCondition, ...] = ()
        both = left.scope.with_relations(*right.scope.relations)
        if condition is not None:
            check_expression(self.expressions, condition, both, Clause.ON)
            self.expressions.problems.extend(condition_problems(condition, both, self.expressions))
            times = time_conditions(condition, both, self.expressions)[0] if kind in ("inner", "left semi") else ()
        self.expressions.problems.extend(using_problems(using, left.scope, right.scope, where))
        node = Join(
            where=where,
            columns=scope.star(),
            children=(left.node, right.node),
            part=self.expressions.text.part(join, both),
            kind=kind,
            names=(_name(left, "left"), _name(right, "right")),
            time_keys=time_keys(condition, using, sides),
            bounded=bounded_sides(condition, sides),
            has_equality=has_equality(condition, using, sides),
            hints=hints_of(condition),
            clock=clock_in(condition),
            times=times,
        )
        # Spark moves a WHERE over such a join into its condition
        is_pair = kind == "inner" and len(left.scope.relations) == len(right.scope.relations) == 1
        return From(node, scope, sides if is_pair else None)

    def _lateral_join(self, left: From, join: exp.Join, views: Mapping[str, Node]) -> From:
        found = self._lateral(left, join.this, views)
        condition = join.args.get("on")
        if condition is not None:
            self.expressions.check(condition, found.scope)
        kind = join_kind(join, self.expressions.text)
        is_plain = condition is None or not self._has_on(join.this)
        laterals = Laterals(self.expressions, left.scope, self.scope_of)
        node = LateralJoin(
            where=found.node.where,
            columns=found.node.columns,
            children=found.node.children,
            subqueries=found.node.subqueries,
            kind="left" if kind == "left" else "inner",
            domain=laterals.domain(join.this.this, is_plain=is_plain),
        )
        return From(node, found.scope)

    def _has_on(self, lateral: exp.Lateral) -> bool:
        """Returns whether ON follows a lateral subquery: sqlglot adds a condition if there is none."""
        end = max(part.meta["end"] for part in lateral.walk() if "end" in part.meta)
        following = (token for token in self.expressions.text.tokens if token.start > end)
        return next((token.key == "ON" for token in following if token.key != ")"), False)

    def _lateral(self, left: From, lateral: exp.Lateral, views: Mapping[str, Node]) -> From:
        alias = lateral.args.get("alias")
        function = lateral.this
        name = alias.name if alias is not None and alias.this else None
        queries: tuple[Node, ...] = ()
        self.expressions.problems.extend(constant_problems(function, self.expressions.text))
        if isinstance(function, exp.Subquery):
            queries = (self.open_query(function.this, Scope(outer=left.scope), views),)
            columns = _renamed(queries[0], alias).columns
        else:
            self.expressions.problems.extend(range_problems(function, self.expressions.text))
            check_expression(self.expressions, function, left.scope, Clause.LATERAL_VIEW)
            if lateral.args.get("view"):
                self.expressions.problems.extend(lateral_view_problems(function, self.expressions.text))
            columns = self.expressions.generated(function, left.scope, _column_names(alias))
        added = _apart((ScopedRelation(name, columns),), left.scope)
        scope, where = left.scope.with_relations(*added), self.expressions.text.where(lateral)
        return From(Generate(where=where, columns=scope.star(), children=(left.node,), subqueries=queries), scope)


def _is_relation(node: exp.Expr) -> bool:
    """Returns whether what is in parentheses is a relation, as in `((orders) o)`, and not a query."""
    if isinstance(node, exp.Subquery):
        return bool(node.args.get("alias")) or _is_relation(node.this)
    return not isinstance(node, exp.Query)


def _column_names(alias: exp.Expr | None) -> list[str]:
    """Returns the column names in `t(a, b)`."""
    return [column.name for column in alias.args.get("columns") or ()] if alias is not None else []


def _renamed(node: Node, alias: exp.Expr | None) -> Node:
    names = _column_names(alias)
    return replace(node, columns=renamed(node.columns, names)) if names else node


def _name(relations: From, unnamed: str) -> str:
    return next((item.name for item in reversed(relations.scope.relations) if item.name), unnamed)


def _marker(sample: exp.Expr) -> int | None:
    size = sample.args.get("size")
    rows = int(size.this) if isinstance(size, exp.Literal) and str(size.this).isdigit() else 0
    return rows if rows >= FIRST_SAMPLE else None


def _common(left: Columns | None, right: Columns | None) -> list[str]:
    names = {column.name.lower() for column in right or ()}
    return [column.name.lower() for column in left or () if column.name.lower() in names]


def _apart(relations: tuple[ScopedRelation, ...], left: Scope) -> tuple[ScopedRelation, ...]:
    """Returns the right side of a join with new columns if it has columns of the left side.

    The same column twice is one attribute, but the two sides of a join have different ones in Spark.
    """
    known = {id(column) for item in left.relations for column in item.columns or ()}
    own = {id(column): column for item in relations for column in item.columns or ()}
    if known.isdisjoint(own):
        return relations
    new = {key: replace(column) for key, column in own.items()}
    return tuple(
        replace(item, columns=item.columns and tuple(new[id(column)] for column in item.columns)) for item in relations
    )


def _merged(left: Scope, right: Scope, kind: str, using: list[str]) -> Scope:
    if kind in ("left semi", "left anti"):
        return left
    merged = frozenset(using)
    return left.with_relations(*(replace(item, merged=item.merged | merged) for item in right.relations))


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
