"""The column that an expression returns, with its type, watermark and origins, and the errors in its names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from sqlstream.compiler.flow.columns import NO_INNER, Column, LostWatermark
from sqlstream.compiler.flow.expressions.expression_types import generator_columns, type_of
from sqlstream.compiler.flow.expressions.literals import Known
from sqlstream.compiler.flow.expressions.nested_watermarks import (
    NO_WATERMARKS,
    UNKNOWN_INNER,
    Context,
    ValueWatermarks,
    expression_watermarks,
    field_watermarks,
    generator_watermarks,
    marked,
)
from sqlstream.compiler.flow.functions import FUNCTIONS, TABLE_FUNCTIONS
from sqlstream.compiler.flow.names import (
    Ambiguous,
    Resolution,
    ResolvedName,
    Scope,
    UnresolvedName,
    field_problems,
    function_problem,
    name_problem,
)
from sqlstream.compiler.flow.nodes import Call, Node
from sqlstream.compiler.flow.text import Text, is_windowed, name_parts
from sqlstream.compiler.flow.type_rules import field_type, may_be_large, struct_of
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.project.types.data_types import DataType
from sqlstream.project.wording import quoted

WINDOWS = frozenset({"window", "session_window"})
"""Functions whose result an aggregation adds as a column with the function's name."""

TIME_WINDOWS = WINDOWS | {"window_time"}
"""Functions whose result has the watermark of their first argument."""

HOLDERS = frozenset({"struct", "named_struct", "array", "map", "arrays_zip", "map_from_arrays"})
"""Functions whose result contains their arguments, each with its watermark."""

_TYPES = "bigint binary boolean date decimal double float int smallint string timestamp tinyint"
_CASTS = frozenset({"", "cast", "try_cast", *_TYPES.split()})
"""The functions that are casts; a cast with `::` has no name."""

KNOWN = FUNCTIONS.keys() | TABLE_FUNCTIONS

Functions = Mapping[str, DataType | None]
"""The project's own functions by name in lower case, with the type of their result; None if it is unknown."""

Types = dict[int, tuple[Known, Scope]]
"""Types of expressions by the `id` of their scope. The scope is kept too, so that no other object gets its id."""


@dataclass(frozen=True)
class Expressions:
    """Reads the expressions of one text and adds what is wrong to `problems`.

    `open_query` builds the tree of a subquery. `knows_functions` means that no package adds functions to those of Spark
    and to `functions`, those of the project. `types` are the types found so far.
    """

    text: Text
    problems: list[SqlProblem]
    open_query: Callable[[exp.Query, Scope], Node]
    knows_functions: bool = False
    types: Types = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)

    def column(self, node: exp.Expr, scope: Scope, name: str | None = None) -> Column:
        """Returns the column that `node` returns, with `name` or else with the name that Spark chooses."""
        inner = node.unalias().unnest()
        cast = self._column_in_cast(node, scope)
        named = name or cast or output_name(node, self.text)
        is_generated = name is None and not cast and _is_generated(node, self.text)
        found = scope.resolve(name_parts(inner))
        if isinstance(found, ResolvedName) and not found.fields:
            # for Spark, `a as a` is another attribute than `a`
            return found.column.called(named) if isinstance(node, exp.Alias) else found.column.respelled(named)
        used = self._used(inner, scope)
        window = self.text.written(inner) if self.text.function(inner) in TIME_WINDOWS else ""
        value = self._timed(inner, scope) if window else self._within(inner, found, used, scope)
        # only these can have a watermark themselves: other expressions lose it
        named_only = bool(window) or isinstance(inner, exp.Column | exp.Dot | exp.Bracket)
        unclear = isinstance(found, UnresolvedName | Ambiguous) or (named_only and not value.inner.is_known)
        stars, opened = tuple(self._of_stars(inner, scope)), self._open_origins(inner, scope)
        starred = (column.origins for column in stars)
        origins = _together([*(item.column.origins for item in used), *starred, *opened])
        lacking = any(item.column.may_lack and may_be_large(type_of_field(item)) for item in used)
        return Column(
            named,
            self.type_of(inner, scope),
            event_time=value.time,
            lost=self._lost(inner, used) if value == NO_WATERMARKS else None,
            origins=origins,
            window=window,
            inner=value.inner,
            may_carry=unclear,
            path=self._path(found),
            may_lack=lacking or any(column.may_lack for column in stars),
            is_generated=is_generated,
        )

    def _path(self, found: Resolution) -> tuple[str, ...]:
        """Returns the path of the field that a name refers to; empty if its column has none."""
        if not isinstance(found, ResolvedName) or not found.column.path:
            return ()
        return (*found.column.path, *found.fields)

    def _column_in_cast(self, node: exp.Expr, scope: Scope) -> str:
        """Returns the name of the column in `cast(t.a as int)`, which the result keeps; empty for other nodes."""
        inner = node.unnest()
        if self.text.function(inner) not in _CASTS or not isinstance(inner, exp.Cast | exp.Anonymous):
            return ""
        arguments = inner.expressions if isinstance(inner, exp.Anonymous) else [inner.this]
        parts = name_parts(arguments[0]) if len(arguments) == 1 else ()
        found = scope.resolve(parts)
        return "" if not parts or (isinstance(found, ResolvedName) and found.fields) else parts[-1]

    def plain(self, node: exp.Expr, scope: Scope) -> Column | None:
        """Returns the column that a name refers to; None for a field and for a name that does not resolve."""
        parts = name_parts(node)
        found = scope.resolve(parts)
        return found.column.respelled(parts[-1]) if isinstance(found, ResolvedName) and not found.fields else None

    def check(self, node: exp.Expr, scope: Scope) -> None:
        """Adds the problems of the names in `node`, including those of functions."""
        if self.knows_functions:
            self._check_functions(node)
        self._check_numbers(node, scope)
        starred = () if node.is_star else self._of_stars(node, scope)
        lacking = [(f"{column.name}.*", node) for column in starred if column.may_lack]
        for names, part in self.text.parts_of(node).names:
            found = scope.resolve(names)
            if isinstance(found, ResolvedName) and found.column.may_lack and part is not node.unalias().unnest():
                lacking += [(".".join(names), part)] if may_be_large(type_of_field(found)) else []
            if found is None or (isinstance(found, ResolvedName) and not found.fields):
                continue
            where = self.text.where(part)
            if isinstance(found, ResolvedName):
                self.problems.extend(field_problems(found, where.offset))
            else:
                self.problems.append(name_problem(found, names, where))
        self.problems.extend(self._lacking(*each) for each in lacking)

    def _lacking(self, name: str, part: exp.Expr) -> SqlProblem:
        """Returns the problem of an expression with a value that a change event may not have."""
        what = f"this expression reads {quoted(name)}, which a change event may not have"
        why = "the source sets listUnavailable, so the value is null in the changes that leave it as it was"
        fix = "select the column alone, under its name, and compute from the table of the sink what else you need"
        return self.text.problem(part, "unavailable-value", what, why, fix)

    def _check_numbers(self, node: exp.Expr, scope: Scope) -> None:
        """Checks names such as 0x1F, which sqlglot reads as a number."""
        walked = self.text.parts_of(node)
        for part in walked.parts if exp.HexString in walked.kinds else ():
            is_placed = isinstance(part, exp.HexString) and "start" in part.meta
            name = self.text.sql[part.meta["start"] : part.meta["end"] + 1] if is_placed else ""
            found = scope.resolve((name,)) if name.startswith("0") else None
            if isinstance(found, UnresolvedName):
                self.problems.append(name_problem(found, (name,), self.text.where(part)))

    def _check_functions(self, node: exp.Expr) -> None:
        for name, part in self.text.parts_of(node).functions:
            plain = isinstance(part, exp.Anonymous) and isinstance(part.this, str)
            # after a dot, it is a function of a catalog
            if plain and name not in KNOWN and name not in self.functions and not isinstance(part.parent, exp.Dot):
                self.problems.append(function_problem(part.this, self.text.where(part).offset, self.functions))

    def subqueries(self, node: exp.Expr, scope: Scope) -> tuple[Node, ...]:
        """Returns the trees of the queries in `node`."""
        return tuple(self.open_query(query, Scope(outer=scope)) for query in self.text.parts_of(node).queries)

    def generated(self, node: exp.Expr, scope: Scope, names: Sequence[str]) -> tuple[Column, ...] | None:
        """Returns the columns of a generator, with `names` if their number matches; None if they are unknown."""
        made = generator_columns(node, lambda part: self.type_of_name(part, scope), self.text.sql)
        source = replace(self.column(node, scope, "generated"), type=None)
        if made is None or (names and len(names) != len(made)):
            return tuple(replace(source, name=name, may_carry=not source.inner.is_known) for name in names) or None
        own_names = [name for name, _ in made]
        values = generator_watermarks(node, own_names, self._context(scope))
        lost = self._lost(node, self._used(node, scope))
        return tuple(
            marked(Column(name, kind, origins=source.origins), value, lost)
            for name, (_, kind), value in zip(names or own_names, made, values, strict=True)
        )

    def calls(self, node: exp.Expr, names: frozenset[str]) -> tuple[Call, ...]:
        """Returns the calls in `node` of functions with one of `names`, except those with OVER."""
        return tuple(
            Call(name, _is_distinct(part), self.text.as_written(part), self.text.where(part))
            for name, part in self.text.parts_of(node).functions
            if name in names and not is_windowed(part)
        )

    def type_of_name(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of a column or field; None if it is unknown."""
        found = scope.resolve(name_parts(node))
        return type_of_field(found) if isinstance(found, ResolvedName) else None

    def type_of(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of an expression; None if it is unknown."""
        if isinstance(node, exp.Column):
            return self.type_of_name(node, scope)
        known, _ = self.types.setdefault(id(scope), ({}, scope))
        found = known.get(id(node))
        if found is not None:
            return found[0]
        # first, because the types of the expressions around them depend on these
        for name, part in self.text.parts_of(node).functions if self.functions else ():
            if name in self.functions:
                known[id(part)] = (self.functions[name], part)
        if id(node) in known:
            return known[id(node)][0]
        return type_of(node, lambda part: self._type_of_reference(part, scope), self.text.sql, known)

    def _type_of_reference(self, node: exp.Expr, scope: Scope) -> DataType | None:
        if not node.is_star:
            return self.type_of_name(node, scope)
        columns = star_columns(node, scope)
        return struct_of((column.name, column.type) for column in columns) if columns else None

    def _used(self, node: exp.Expr, scope: Scope) -> list[ResolvedName]:
        found = (scope.resolve(names) for names, _ in self.text.parts_of(node).names)
        return [item for item in found if isinstance(item, ResolvedName)]

    def _context(self, scope: Scope) -> Context:
        return Context(self.text.function, partial(self.column, scope=scope), partial(star_columns, scope=scope))

    def _open_origins(self, node: exp.Expr, scope: Scope) -> Iterator[frozenset[tuple[str, str]]]:
        """Yields the columns of sources that do not declare their columns."""
        for names, _ in self.text.parts_of(node).names:
            origin = scope.open_origin(names) if names and scope.resolve(names) is None else None
            if origin is not None:
                yield frozenset({origin})

    def _of_stars(self, node: exp.Expr, scope: Scope) -> Iterator[Column]:
        """Yields the columns of each star in `node`, except in count(*), and the struct of a star over its fields."""
        for part in self.text.parts_of(node).parts if "*" in self.text.read.keys else ():
            if part.is_star and isinstance(part, exp.Star | exp.Column) and not isinstance(part.parent, exp.Count):
                struct = tuple(each.name for each in part.parts[:-1]) if isinstance(part, exp.Column) else ()
                columns, found = star_columns(part, scope), scope.resolve(struct)
                yield from (found.column,) if columns is None and isinstance(found, ResolvedName) else columns or ()

    def _timed(self, node: exp.Expr, scope: Scope) -> ValueWatermarks:
        """Returns the watermark that a time window keeps: that of an unchanged column, not of a field."""
        first = next(node.iter_expressions(), None)
        if first is None:
            return NO_WATERMARKS
        found = scope.resolve(name_parts(first))
        if isinstance(found, ResolvedName) and not found.fields:
            return ValueWatermarks(found.column.event_time, UNKNOWN_INNER if found.column.may_carry else NO_INNER)
        return self._timed(first, scope) if self.text.function(first) in TIME_WINDOWS else NO_WATERMARKS

    def _within(self, node: exp.Expr, found: object, used: list[ResolvedName], scope: Scope) -> ValueWatermarks:
        """Returns the watermark of a field, and the watermarks inside the value of any expression."""
        if isinstance(found, ResolvedName):
            return _watermarks_of_name(found)
        times = any(item.column.event_time for item in used) or node.find(exp.Star)
        builds = times and any(name in HOLDERS for name, _ in self.text.parts_of(node).functions)
        if not builds and all(item.column.inner == NO_INNER for item in used):
            return NO_WATERMARKS
        return expression_watermarks(node, self._context(scope))

    def _lost(self, node: exp.Expr, used: list[ResolvedName]) -> LostWatermark | None:
        for item in used:
            time, name = item.column.event_time, item.column.name
            if item.fields and not item.column.window:  # the start and end of a window do not carry its watermark
                time, name = _watermarks_of_name(item).time, ".".join((name, *item.fields))
            if time is not None:
                return LostWatermark(self.text.where(node), self.text.written(node), name)
        return next((item.column.lost for item in used if item.column.lost is not None), None)


def _is_distinct(call: exp.Expr) -> bool:
    """Returns whether a call has DISTINCT, also inside the order that WITHIN GROUP puts around its argument."""
    arguments = (child.this if isinstance(child, exp.Order) else child for child in call.iter_expressions())
    return any(isinstance(argument, exp.Distinct) for argument in arguments)


def star_columns(node: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
    """Returns the columns of `*` or `t.*` inside an expression; None if they are unknown."""
    names = [part.name.lower() for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    star = node.this if isinstance(node, exp.Column) else node
    if len(names) > 1 or any(star.args.values()):
        return None
    # leave out the windows that GROUP BY adds to the scope
    rows = tuple(
        item
        for item in scope.relations
        if item.name or not (item.columns and all(column.window for column in item.columns))
    )
    return Scope(rows).star(next(iter(names), None))


def _together(origins: Sequence[frozenset[tuple[str, str]]]) -> frozenset[tuple[str, str]]:
    """Returns the union of all origins; those of a single column stay the same object."""
    return origins[0] if len(origins) == 1 else frozenset().union(*origins)


def _watermarks_of_name(found: ResolvedName) -> ValueWatermarks:
    """Returns the watermark of the column or field that a name refers to, and those inside it."""
    value = ValueWatermarks(found.column.event_time, found.column.inner)
    for name in found.fields:
        value = field_watermarks(value.inner, name)
    return value


def type_of_field(found: ResolvedName) -> DataType | None:
    """Returns the type of the column or field that a name refers to; None if it is unknown."""
    kind = found.column.type
    for name in found.fields:
        kind = field_type(kind, name)
    return kind


def output_name(node: exp.Expr, text: Text) -> str:
    """Returns the name of the column that `node` returns: its alias, its last name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    parts = name_parts(node)
    if parts:
        return parts[-1]
    if isinstance(node, exp.Literal | exp.RawString):
        return node.name
    name = text.function(node)
    return name if name in TIME_WINDOWS else text.written(node).lower()


def _is_generated(node: exp.Expr, text: Text) -> bool:
    """Returns whether Spark generates the name of the column, and it may differ from `output_name`."""
    is_exact = isinstance(node, exp.Alias | exp.RawString)
    is_exact |= isinstance(node, exp.Literal) and (node.is_string or node.name.isdigit())
    return not is_exact and not name_parts(node) and text.function(node) not in TIME_WINDOWS
