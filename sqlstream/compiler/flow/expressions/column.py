"""What one expression gives: its type, the watermark it carries, its origins; and what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import NOTHING_HELD, Column, LostWatermark
from sqlstream.compiler.flow.expressions.held_times import NOTHING, UNKNOWN_HELD, Within, generated, taken, within
from sqlstream.compiler.flow.functions.known import FUNCTIONS, TABLE_FUNCTIONS
from sqlstream.compiler.flow.names.problems import field_problem, function_problem, name_problem
from sqlstream.compiler.flow.names.scope import Ambiguous, Missing, Resolution, Resolved, Scope
from sqlstream.compiler.flow.nodes import Call, Node
from sqlstream.compiler.flow.text import Text, is_windowed, parts_of
from sqlstream.compiler.flow.types.nested import field_type
from sqlstream.compiler.flow.types.typer import Known
from sqlstream.compiler.flow.types.types_of import generator_columns, type_of
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.types.types import DataType, Field, Struct

WINDOWS = frozenset({"window", "session_window"})
"""Functions whose result an aggregation gives as a column of their name."""

TIME_WINDOWS = WINDOWS | {"window_time"}
"""Functions that carry on the watermark of their first argument."""

HOLDERS = frozenset({"struct", "named_struct", "array", "map", "arrays_zip", "map_from_arrays"})
"""Functions whose result holds their arguments, each with its watermark."""

KNOWN = FUNCTIONS.keys() | TABLE_FUNCTIONS

Functions = Mapping[str, DataType | None]
"""The project's own functions by their names in lower case, with the type of a call where it is known."""

Types = dict[int, tuple[Known, Scope]]
"""Types of expressions by the `id` of the scope that they are read in, with it, so that no other gets its id."""


@dataclass(frozen=True)
class Expressions:
    """Reads the expressions of one text; problems are added to `problems`. `open_query` builds a subquery's tree;
    `knows_functions` says that there are no functions but Spark's own. `types` are those that have been found.
    `functions` are the project's own.
    """

    text: Text
    problems: list[SqlProblem]
    open_query: Callable[[exp.Query, Scope], Node]
    knows_functions: bool = False
    types: Types = field(default_factory=dict)
    functions: Functions = field(default_factory=dict)

    def column(self, node: exp.Expr, scope: Scope, name: str | None = None) -> Column:
        """Returns the column that `node` gives, under `name` or else under the name Spark gives it."""
        inner = node.unalias()
        while isinstance(inner, exp.Paren):
            inner = inner.this
        named = name or output_name(node, self.text)
        found = self._resolved(inner, scope)
        if isinstance(found, Resolved) and not found.fields:
            return _renamed(found.column, named)
        used = [item for item in self._used(inner, scope) if isinstance(item, Resolved)]
        window = self.text.function(inner) in TIME_WINDOWS
        value = self._timed(inner, scope) if window else self._within(inner, found, used, scope)
        named_only = window or isinstance(inner, exp.Column | exp.Dot | exp.Bracket)
        unclear = isinstance(found, Missing | Ambiguous) or (named_only and not value.held.is_known)
        lost = self._lost(inner, used) if value == NOTHING else None
        stars, opened = self._origins_of_stars(inner, scope), self._open_origins(inner, scope)
        origins = _together([*(item.column.origins for item in used), *stars, *opened])
        kind = self.type_of(inner, scope)
        return Column(named, kind, value.time, lost, origins, window, value.held, unclear)

    def plain(self, node: exp.Expr, scope: Scope) -> Column | None:
        """Returns the column that a mere name means, None where it means a field, or nothing for certain."""
        parts = parts_of(node)
        found = scope.resolve(parts)
        return _renamed(found.column, parts[-1]) if isinstance(found, Resolved) and not found.fields else None

    def check(self, node: exp.Expr, scope: Scope) -> None:
        """Notes what is wrong with the names in `node`, those of functions too."""
        if self.knows_functions:
            self._check_functions(node)
        self._check_numbers(node, scope)
        for names, part in self.text.parts_of(node).names:
            found = scope.resolve(names)
            if found is None or (isinstance(found, Resolved) and not found.fields):
                continue
            where = self.text.where(part)
            if isinstance(found, Resolved):
                problem = field_problem(found, where.offset)
            else:
                problem = name_problem(found, names, where)
            if problem is not None:
                self.problems.append(problem)

    def _check_numbers(self, node: exp.Expr, scope: Scope) -> None:
        """0x1F is a number to sqlglot, and a name to Spark."""
        walked = self.text.parts_of(node)
        for part in walked.parts if exp.HexString in walked.kinds else ():
            if isinstance(part, exp.HexString) and "start" in part.meta:
                name = self.text.sql[part.meta["start"] : part.meta["end"] + 1]
                found = scope.resolve((name,)) if name.startswith("0") else None
                if isinstance(found, Missing):
                    self.problems.append(name_problem(found, (name,), self.text.where(part)))

    def _check_functions(self, node: exp.Expr) -> None:
        for name, part in self.text.parts_of(node).functions:
            plain = isinstance(part, exp.Anonymous) and isinstance(part.this, str)
            if plain and name not in KNOWN and name not in self.functions and not isinstance(part.parent, exp.Dot):
                self.problems.append(function_problem(part.this, self.text.where(part).offset, self.functions))

    def subqueries(self, node: exp.Expr, scope: Scope) -> tuple[Node, ...]:
        """Returns the trees of the queries in `node`."""
        return tuple(self.open_query(query, Scope(outer=scope)) for query in self.text.parts_of(node).queries)

    def generated(self, node: exp.Expr, scope: Scope, names: Sequence[str]) -> tuple[Column, ...] | None:
        """Returns the columns of the generator `node`, under `names` where they are as many; None if not known."""
        made = generator_columns(node, lambda part: self.type_of_name(part, scope), self.text.sql)
        made_from = self.column(node, scope, "generated")
        source = replace(made_from, type=None)
        if made is None or (names and len(names) != len(made)):
            return tuple(replace(source, name=name, may_carry=not source.held.is_known) for name in names) or None
        values = generated(node, [name for name, _ in made], Parts(self, scope))
        lost = self._lost(node, [item for item in self._used(node, scope) if isinstance(item, Resolved)])
        return tuple(
            Column(
                shown,
                kind,
                value.time,
                lost if value == NOTHING else None,
                source.origins,
                held=value.held,
                may_carry=not value.held.is_known,
            )
            for shown, (_, kind), value in zip(names or [name for name, _ in made], made, values, strict=True)
        )

    def calls(self, node: exp.Expr, names: frozenset[str]) -> tuple[Call, ...]:
        """Returns the calls of functions with one of `names` in `node`, those with OVER aside."""
        found: list[Call] = []
        for name, part in self.text.parts_of(node).functions:
            if name in names and not isinstance(part.parent, exp.Window) and not is_windowed(part):
                found.append(Call(name, _is_distinct(part), self.text.said(part), self.text.where(part)))
        return tuple(found)

    def type_of_name(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of a column or of a field of one, None where it is not known."""
        found = self._resolved(node, scope)
        if not isinstance(found, Resolved):
            return None
        return type_of_field(found)

    def type_of(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of an expression, None where it is not known."""
        if isinstance(node, exp.Column):
            return self.type_of_name(node, scope)
        known, _ = self.types.setdefault(id(scope), ({}, scope))
        found = known.get(id(node))
        if found is not None:
            return found[0]
        for name, part in self.text.parts_of(node).functions if self.functions else ():
            if name in self.functions:
                known[id(part)] = (self.functions[name], part)
        if id(node) in known:
            return known[id(node)][0]
        return type_of(node, lambda part: self._type_of_reference(part, scope), self.text.sql, known)

    def _type_of_reference(self, node: exp.Expr, scope: Scope) -> DataType | None:
        if not node.is_star:
            return self.type_of_name(node, scope)
        columns = star_columns(node, scope) or ()
        fields = tuple(Field(column.name, column.type) for column in columns if column.type is not None)
        return Struct(fields) if columns and len(fields) == len(columns) else None

    def _resolved(self, node: exp.Expr, scope: Scope) -> Resolution:
        parts = parts_of(node)
        return scope.resolve(parts) if parts else None

    def _used(self, node: exp.Expr, scope: Scope) -> Iterator[Resolution]:
        return (scope.resolve(names) for names, _ in self.text.parts_of(node).names)

    def _open_origins(self, node: exp.Expr, scope: Scope) -> Iterator[frozenset[tuple[str, str]]]:
        """The columns of sources whose columns are not declared."""
        for names, _ in self.text.parts_of(node).names:
            origin = scope.open_origin(names) if names and scope.resolve(names) is None else None
            if origin is not None:
                yield frozenset({origin})

    def _origins_of_stars(self, node: exp.Expr, scope: Scope) -> Iterator[frozenset[tuple[str, str]]]:
        """Where the columns come from that each star in `node` stands for; that of count(*) stands for none."""
        for part in self.text.parts_of(node).parts if "*" in self.text.read.keys else ():
            if part.is_star and isinstance(part, exp.Star | exp.Column) and not isinstance(part.parent, exp.Count):
                yield from (column.origins for column in star_columns(part, scope) or ())

    def _timed(self, node: exp.Expr, scope: Scope) -> Within:
        """The watermark that a time window carries on: that of a column as it is, not of a field."""
        first = next(node.iter_expressions(), None)
        if first is None:
            return NOTHING
        found = self._resolved(first, scope)
        if isinstance(found, Resolved) and not found.fields:
            return Within(found.column.event_time, UNKNOWN_HELD if found.column.may_carry else NOTHING_HELD)
        return self._timed(first, scope) if self.text.function(first) in TIME_WINDOWS else NOTHING

    def _within(self, node: exp.Expr, found: object, used: list[Resolved], scope: Scope) -> Within:
        """The watermark that a field brings along, and those that the value of any expression holds."""
        if isinstance(found, Resolved):
            return _taken(found)
        times = any(item.column.event_time for item in used) or node.find(exp.Star)
        builds = times and any(name in HOLDERS for name, _ in self.text.parts_of(node).functions)
        if not builds and all(item.column.held == NOTHING_HELD for item in used):
            return NOTHING
        return within(node, Parts(self, scope))

    def _lost(self, node: exp.Expr, used: list[Resolved]) -> LostWatermark | None:
        for item in used:
            time, name = item.column.event_time, item.column.name
            if item.fields and not item.column.window:  # the start and end of a window have lost what it carries
                time, name = _taken(item).time, ".".join((name, *item.fields))
            if time is not None:
                return LostWatermark(self.text.where(node), self.text.written(node), name)
        return next((item.column.lost for item in used if item.column.lost is not None), None)


@dataclass(frozen=True)
class Parts:
    """What is known of the parts of an expression in `scope`."""

    expressions: Expressions
    scope: Scope

    def name(self, node: exp.Expr) -> str:
        """Returns the function that `node` calls, in lower case; empty where it is no call."""
        return self.expressions.text.function(node)

    def column(self, node: exp.Expr) -> Column:
        """Returns the column that `node` would give."""
        return self.expressions.column(node, self.scope)

    def star(self, node: exp.Expr) -> tuple[Column, ...] | None:
        """Returns the columns that `*` or `t.*` stands for, None where they are not known."""
        return star_columns(node, self.scope)


def _is_distinct(call: exp.Expr) -> bool:
    """Whether a function takes each value once; WITHIN GROUP puts an order around its argument."""
    arguments = (child.this if isinstance(child, exp.Order) else child for child in call.iter_expressions())
    return any(isinstance(argument, exp.Distinct) for argument in arguments)


def star_columns(node: exp.Expr, scope: Scope) -> tuple[Column, ...] | None:
    """Returns the columns that `*` or `t.*` within an expression stands for, None where they are not known."""
    names = [part.name.lower() for part in node.parts[:-1]] if isinstance(node, exp.Column) else []
    star = node.this if isinstance(node, exp.Column) else node
    if len(names) > 1 or any(star.args.values()):
        return None
    # the windows that GROUP BY adds to the scope are no columns of FROM
    rows = tuple(item for item in scope.relations if item.name or not _are_windows(item.columns))
    return Scope(rows).star(next(iter(names), None))


def _are_windows(columns: tuple[Column, ...] | None) -> bool:
    return bool(columns) and all(column.window for column in columns or ())


def _together(origins: Sequence[frozenset[tuple[str, str]]]) -> frozenset[tuple[str, str]]:
    """All of them; what one column alone comes from is the same object, and is kept once."""
    return origins[0] if len(origins) == 1 else frozenset().union(*origins)


def _renamed(column: Column, name: str) -> Column:
    return column if column.name == name else replace(column, name=name)


def _taken(found: Resolved) -> Within:
    """The watermark of what a name means, and those that it holds."""
    value = Within(found.column.event_time, found.column.held)
    for name in found.fields:
        value = taken(value.held, name)
    return value


def type_of_field(found: Resolved) -> DataType | None:
    """Returns the type of what a name means: that of its column, or of the field of it, None where it is not known."""
    kind = found.column.type
    for name in found.fields:
        kind = field_type(kind, name)
    return kind


def output_name(node: exp.Expr, text: Text) -> str:
    """Returns the name of the column that `node` gives: its alias, its own last name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    parts = parts_of(node)
    if parts:
        return parts[-1]
    name = text.function(node)
    return name if name in TIME_WINDOWS else text.written(node).lower()
