"""The select list: its columns, and its functions with OVER."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import Expressions, type_of_field
from sqlstream.compiler.flow.expressions.literals import named_type
from sqlstream.compiler.flow.expressions.misplaced_functions import Clause, alias_problems, unwrapped
from sqlstream.compiler.flow.expressions.nested_watermarks import field_watermarks, marked
from sqlstream.compiler.flow.functions import GENERATORS
from sqlstream.compiler.flow.names import ResolvedName, Scope, ScopedRelation
from sqlstream.compiler.flow.nodes import Node, WindowCall, WindowFunctions
from sqlstream.compiler.flow.text import Text, computed_items, name_parts
from sqlstream.compiler.flow.type_rules import STRING, are_incompatible, common_type_of, may_be_large
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.compiler.sql.spark_reading import write
from sqlstream.project.types.data_types import Struct


@dataclass(frozen=True)
class SelectList:
    """The select list of `select`, whose names resolve in `scope`."""

    select: exp.Select
    scope: Scope
    expressions: Expressions

    def columns(self) -> tuple[Column, ...] | None:
        """Returns the columns; None if a star or a generator has unknown ones."""
        found: list[Column] = []
        is_known = True
        scope = self.scope.with_aliases()
        first = next(iter(self.select.expressions), None)
        if first is not None and isinstance(first.unalias(), exp.QueryTransform):
            return self._scripted(first, scope)
        for item in self.select.expressions:
            columns = self._item(item, scope)
            if columns is None:
                is_known = False
                continue
            found += columns
            if isinstance(item, exp.Alias) and len(columns) == 1:
                scope.aliases.setdefault(item.alias.lower(), columns[0])
        return tuple(found) if is_known else None

    def _item(self, item: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
        if isinstance(item, exp.Star):
            return self._star(item, scope.relations)
        if isinstance(item, exp.Column):
            if isinstance(item.this, exp.Star):
                return self._qualified_star(item, scope)
            column = self.expressions.plain(item, scope)
            if column is not None:
                return (column,)  # most items are columns and have no problems
        check_expression(self.expressions, item, scope, Clause.SELECT)
        inner = unwrapped(item)
        if self.expressions.text.function(inner) in GENERATORS:
            return self._generated(item, inner, scope)
        self.expressions.problems.extend(alias_problems(item, None, self.expressions.text))
        return (self.expressions.column(item, scope),)

    def _generated(self, item: exp.Expr, generator: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
        # first with Spark's names, whose number those after AS must match
        made = self.expressions.generated(generator, scope, ())
        count = None if made is None else len(made)
        if isinstance(item, exp.Alias | exp.Aliases):
            self.expressions.problems.extend(alias_problems(item, count, self.expressions.text))
        return self.expressions.generated(generator, scope, list(_alias_names(item)))

    def _scripted(self, item: exp.Expr, scope: Scope) -> tuple[Column, ...]:
        """Returns the columns of `TRANSFORM (...) USING 'script' AS (...)`: by default, text in `key` and `value`.

        In AS without parentheses, the names are the alias and the other items of the list.
        """
        transform = item.unalias()
        check_expression(self.expressions, transform, scope, Clause.SELECT)
        schema = transform.args.get("schema")
        parts = schema.expressions if schema is not None else ()
        named = [(part.name, part.args.get("kind")) for part in parts]
        if isinstance(item, exp.Alias):
            named = [(name, None) for name in (item.alias, *(other.name for other in self.select.expressions[1:]))]
        origins = self.expressions.column(transform, scope).origins
        return tuple(
            Column(name, STRING if kind is None else named_type(kind, self.expressions.text.sql), origins=origins)
            for name, kind in named or [("key", None), ("value", None)]
        )

    def _star(self, star: exp.Expr, relations: tuple[ScopedRelation, ...]) -> tuple[Column, ...] | None:
        listed: list[tuple[str | None, Column]] = []
        for relation in relations:
            if relation.listed is None:
                return None
            listed += [(relation.name, column) for column in relation.listed]
        return self._but(star, Scope(relations), listed)

    def _but(self, star: exp.Expr, scope: Scope, listed: list[tuple[str | None, Column]]) -> tuple[Column, ...]:
        """Returns the columns of a star, `listed` with the names of their relations, without those in its EXCEPT.

        EXCEPT can also remove a field of a struct, whose type is then unknown.
        """
        for part in star.args.get("except_") or ():
            names = name_parts(part)
            self.expressions.check(part, scope)
            found = scope.resolve(names)
            if not isinstance(found, ResolvedName):
                continue
            qualifiers = {(name or "").lower() for name, column in listed if column is found.column}
            qualified = names[0].lower() in qualifiers and len(names) - len(found.fields) > 1
            meant = {names[0].lower()} if qualified else qualifiers
            removed = [column is found.column and (name or "").lower() in meant for name, column in listed]
            listed = [
                (name, replace(column, type=None) if is_removed else column)
                for (name, column), is_removed in zip(listed, removed, strict=True)
                if found.fields or not is_removed
            ]
        return tuple(column for _, column in listed)

    def _qualified_star(self, item: exp.Column, scope: Scope) -> tuple[Column, ...] | None:
        """Returns the columns of `t.*` or `struct.*`; None if they are unknown."""
        parts = tuple(part.name for part in item.parts[:-1])
        named = tuple(relation for relation in scope.relations if relation.key == parts[-1].lower())
        if named and len(parts) == 1:
            # unlike `*`, `t.*` has the columns that USING merged into another relation
            return self._star(item.this, tuple(replace(relation, merged=frozenset()) for relation in named))
        found = scope.resolve(parts)
        kind = type_of_field(found) if isinstance(found, ResolvedName) else None
        if not isinstance(found, ResolvedName) or not isinstance(kind, Struct):
            return None
        base = found.column
        fields = [
            Column(
                field.name,
                field.type,
                origins=base.origins,
                path=base.path and (*base.path, *found.fields, field.name),
                may_lack=base.may_lack and may_be_large(field.type),
            )
            for field in kind.fields
        ]
        columns = self._but(
            item.this, Scope((ScopedRelation(None, tuple(fields)),)), [(None, field) for field in fields]
        )
        inner = base.inner
        for name in found.fields:
            inner = field_watermarks(inner, name).inner
        return tuple(marked(column, field_watermarks(inner, column.name)) for column in columns)


def lists_all(select: exp.Select) -> bool:
    """Returns whether the select list is only `*`."""
    items = select.expressions
    return len(items) == 1 and isinstance(items[0], exp.Star) and not any(items[0].args.values())


def _alias_names(item: exp.Expr) -> Iterator[str]:
    if isinstance(item, exp.Aliases):
        yield from (part.name for part in item.expressions if isinstance(part, exp.Identifier))
    elif isinstance(item, exp.Alias):
        yield item.alias


def with_window_functions(select: exp.Select, node: Node, text: Text) -> Node:
    """Returns `node` with the functions with OVER in `select` on top; `node` itself if there are none."""
    if "OVER" not in text.read.keys:
        return node
    clauses = [select.args[name] for name in ("qualify", "order") if select.args.get(name) is not None]
    parts = [*computed_items(select), *clauses]
    found = tuple(_window_call(window, text) for part in parts for window in part.find_all(exp.Window))
    if not found:
        return node
    return WindowFunctions(where=found[0].where, columns=node.columns, children=(node,), functions=found)


def _window_call(window: exp.Window, text: Text) -> WindowCall:
    function = window.this
    while isinstance(function, exp.IgnoreNulls | exp.RespectNulls | exp.Filter):
        function = function.this
    order = window.args["order"].expressions if window.args.get("order") else []
    return WindowCall(
        name=text.function(function) or write(function).lower(),
        distinct=False,
        text=text.written(window),
        where=text.where(window),
        partition=tuple(map(text.written, window.args.get("partition_by") or ())),
        order=tuple(text.written(item.this if isinstance(item, exp.Ordered) else item) for item in order),
        descends=bool(order and order[0].args.get("desc")),
    )


def united_columns(left: Columns | None, right: Columns | None) -> Columns | None:
    """Returns the columns of a set operation: names and watermarks of the first query, and common types."""
    if left is None or right is None or len(left) != len(right):
        return left  # `set_problems` reports another number of columns
    united = [_united(first, second) for first, second in zip(left, right, strict=True)]
    # `select a, a` has one attribute twice, which stays one unless Spark casts each of them to another type
    same: dict[int, Column] = {}
    for first, column in zip(left, united, strict=True):
        earlier = same.get(id(first), column)
        same[id(first)] = replace(earlier, origins=earlier.origins | column.origins)
    return tuple(
        same[id(first)] if column.type == first.type else column for first, column in zip(left, united, strict=True)
    )


def _united(first: Column, second: Column) -> Column:
    type_ = first.type if first.type == second.type else common_type_of((first.type, second.type))
    same = first.path if first.path == second.path else ()
    may_lack = first.may_lack or second.may_lack
    return replace(first, type=type_, origins=first.origins | second.origins, path=same, may_lack=may_lack)


def set_problems(left: Columns | None, right: Columns | None, offset: int, *, by_name: bool) -> Iterator[SqlProblem]:
    """Yields the problems of a set operation of two queries; `offset` is that of the second one."""
    if by_name:
        what = "UNION BY NAME does not exist in Spark SQL"
        why = "UNION matches columns by position; unionByName exists only for DataFrames"
        fix = "remove BY NAME, and select the columns of both queries in the same order"
        yield SqlProblem(offset, "sql-syntax", what, why, fix)
    elif left is not None and right is not None and len(left) != len(right):
        what = f"the first query has {len(left)} columns, but this one has {len(right)}"
        why = "UNION, EXCEPT and INTERSECT match the columns of their queries by position"
        fix = "select the same columns in both; select null as name for a missing one"
        yield SqlProblem(offset, "column-count", what, why, fix)
    else:
        yield from _type_problems(left or (), right or (), offset)


def _type_problems(left: Columns, right: Columns, offset: int) -> Iterator[SqlProblem]:
    for place, (first, second) in enumerate(zip(left, right, strict=False), start=1):
        if are_incompatible(first.type, second.type):
            there = f"column {place} of the first query, `{first.name}`,"
            what = f"`{second.name}` has type {second.type}, but {there} has type {first.type}"
            why = "UNION, EXCEPT and INTERSECT match columns by position, and these two types have no common type"
            fix = "select the columns of both queries in the same order, or cast one of them"
            yield SqlProblem(offset, "column-type", what, why, fix)
