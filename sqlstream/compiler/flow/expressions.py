"""What one expression gives: its type, the watermark it carries, its origins; and what is wrong in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from sqlstream.compiler.clauses import after_parentheses
from sqlstream.compiler.flow.held_times import UNKNOWN_HELD, Within, generated, taken, within
from sqlstream.compiler.flow.nested_types import field_type
from sqlstream.compiler.flow.nodes import NOTHING_HELD, Call, Column, Lost, Node, Where
from sqlstream.compiler.flow.problems import field_problem, function_problem, name_problem
from sqlstream.compiler.flow.scope import Missing, Resolved, Scope
from sqlstream.compiler.flow.spark_functions import AGGREGATES, ALL, TABLE_FUNCTIONS
from sqlstream.compiler.flow.types_of import generator_columns, type_of
from sqlstream.compiler.problem import SqlProblem
from sqlstream.compiler.sql_text import SqlText, read_sql
from sqlstream.compiler.tokens import Tokens
from sqlstream.project.types import DataType

TIME_WINDOWS = frozenset({"window", "session_window", "window_time"})
"""Functions that carry on the watermark of their first argument."""

WITHOUT_PLACE: dict[type[exp.Expr], str] = {
    exp.ArgMax: "max_by",
    exp.ArgMin: "min_by",
    exp.ApproxQuantile: "percentile_approx",
    exp.Quantile: "percentile",
    exp.GroupConcat: "listagg",
}
"""Aggregate functions that sqlglot makes without keeping where the name stands, and a name of each."""

HOLDERS = frozenset({"struct", "named_struct", "array", "map", "arrays_zip", "map_from_arrays"})
"""Functions whose result holds their arguments, each with its watermark."""

UNIT_FIRST = frozenset({"timestampadd", "timestampdiff", "dateadd", "datediff", "date_add", "date_diff", "extract"})
"""Functions whose first argument may be a unit such as HOUR, which looks like a column."""


@dataclass(frozen=True)
class Text:
    """A model's compiled SQL, and its unique id: what places refer to."""

    model: str
    sql: str

    @cached_property
    def read(self) -> SqlText:
        """The text, which can be read, with its tokens and relations."""
        return read_sql(self.sql)

    @property
    def tokens(self) -> Tokens:
        """The tokens of the text."""
        return self.read.tokens

    @cached_property
    def _places(self) -> dict[int, int]:
        return {token.start: index for index, token in enumerate(self.tokens)}

    @cached_property
    def after(self) -> dict[int, int]:
        """For the index of each `(`, the index after its `)`."""
        return after_parentheses(self.tokens)

    @cached_property
    def calls(self) -> dict[str, list[int]]:
        """The indexes of the words before a `(`, by the word in lower case."""
        found: dict[str, list[int]] = {}
        for opening in self.after:
            if opening and self.tokens[opening - 1].key:
                found.setdefault(self.tokens[opening - 1].key.lower(), []).append(opening - 1)
        return found

    def token_at(self, offset: int) -> int | None:
        """Returns the index of the token that starts at `offset`."""
        return self._places.get(offset)

    def where(self, node: exp.Expr) -> Where:
        """Returns the place of `node`: that of the first token in it that has one, or else in what it is a part of."""
        starts = [part.meta["start"] for part in node.walk() if "start" in part.meta]
        if not starts and node.parent is not None:
            return self.where(node.parent)
        return Where(self.model, min(starts, default=0))

    def written(self, node: exp.Expr) -> str:
        """Returns `node` in SQL, on one line."""
        return node.sql("spark", comments=False, normalize_functions=False)


@dataclass(frozen=True)
class Expressions:
    """Reads the expressions of one text; problems are added to `problems`. `open_query` builds a subquery's tree;
    `knows_functions` says that there are no functions but Spark's own.
    """

    text: Text
    problems: list[SqlProblem]
    open_query: Callable[[exp.Query, Scope], Node]
    knows_functions: bool = False

    def column(self, node: exp.Expr, scope: Scope, name: str | None = None) -> Column:
        """Returns the column that `node` gives, under `name` or else under the name Spark gives it."""
        inner = node.unalias()
        while isinstance(inner, exp.Paren):
            inner = inner.this
        named = name or output_name(node, self.text)
        found = self._resolved(inner, scope)
        if isinstance(found, Resolved) and not found.fields:
            return replace(found.column, name=named)
        used = [item for item in self._used(inner, scope) if isinstance(item, Resolved)]
        window = function_name(inner, self.text) in TIME_WINDOWS
        value = self._timed(inner, scope) if window else self._within(inner, found, used, scope)
        unclear = not value.held.is_known and (window or isinstance(inner, exp.Column | exp.Dot | exp.Bracket))
        lost = self._lost(inner, used) if value == Within() else None
        origins = frozenset(origin for item in used for origin in item.column.origins)
        kind = self.type_of(inner, scope)
        return Column(named, kind, value.time, lost, origins, window, value.held, unclear)

    def check(self, node: exp.Expr, scope: Scope) -> None:
        """Notes what is wrong with the names in `node`, those of functions too."""
        if self.knows_functions:
            self._check_functions(node)
        self._check_numbers(node, scope)
        for part in names_in(node, self.text):
            found = scope.resolve(parts_of(part))
            if found is None or (isinstance(found, Resolved) and not found.fields):
                continue
            start = self.text.where(part).offset
            if isinstance(found, Resolved):
                problem = field_problem(found, start)
            else:
                problem = name_problem(found, parts_of(part), start)
            if problem is not None:
                self.problems.append(problem)

    def _check_numbers(self, node: exp.Expr, scope: Scope) -> None:
        """0x1F is a number to sqlglot, and a name to Spark."""
        for part in walk_expression(node):
            if isinstance(part, exp.HexString) and "start" in part.meta:
                name = self.text.sql[part.meta["start"] : part.meta["end"] + 1]
                found = scope.resolve((name,)) if name.startswith("0") else None
                if isinstance(found, Missing):
                    self.problems.append(name_problem(found, (name,), part.meta["start"]))

    def _check_functions(self, node: exp.Expr) -> None:
        for part in walk_expression(node):
            plain = isinstance(part, exp.Anonymous) and isinstance(part.this, str)
            if plain and part.this.lower() not in ALL | TABLE_FUNCTIONS and not isinstance(part.parent, exp.Dot):
                self.problems.append(function_problem(part.this, self.text.where(part).offset))

    def subqueries(self, node: exp.Expr, scope: Scope) -> tuple[Node, ...]:
        """Returns the trees of the queries in `node`."""
        return tuple(self.open_query(query, Scope(outer=scope)) for query in queries_in(node))

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
                lost if value == Within() else None,
                source.origins,
                held=value.held,
                may_carry=not value.held.is_known,
            )
            for shown, (_, kind), value in zip(names or [name for name, _ in made], made, values, strict=True)
        )

    def calls(self, node: exp.Expr, names: frozenset[str]) -> tuple[Call, ...]:
        """Returns the calls of functions with one of `names` in `node`, those with OVER aside."""
        found: list[Call] = []
        for part in walk_expression(node):
            name = function_name(part, self.text)
            if name in names and not isinstance(part.parent, exp.Window) and not is_windowed(part):
                distinct = any(isinstance(child, exp.Distinct) for child in part.iter_expressions())
                found.append(Call(name, distinct, self.text.written(part), self.text.where(part)))
        return tuple(found)

    def type_of_name(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of a column or of a field of one, None where it is not known."""
        found = self._resolved(node, scope)
        if not isinstance(found, Resolved):
            return None
        return type_of_field(found)

    def type_of(self, node: exp.Expr, scope: Scope) -> DataType | None:
        """Returns the type of an expression, None where it is not known."""
        return type_of(node, lambda part: self.type_of_name(part, scope), self.text.sql)

    def _resolved(self, node: exp.Expr, scope: Scope) -> object:
        return scope.resolve(parts_of(node)) if parts_of(node) else None

    def _used(self, node: exp.Expr, scope: Scope) -> Iterator[object]:
        for part in names_in(node, self.text):
            yield scope.resolve(parts_of(part))

    def _timed(self, node: exp.Expr, scope: Scope) -> Within:
        """The watermark that a time window carries on: that of a column as it is, not of a field."""
        first = next(node.iter_expressions(), None)
        if first is None:
            return Within()
        found = self._resolved(first, scope)
        if isinstance(found, Resolved) and not found.fields:
            return Within(found.column.event_time, UNKNOWN_HELD if found.column.may_carry else NOTHING_HELD)
        return self._timed(first, scope) if function_name(first, self.text) in TIME_WINDOWS else Within()

    def _within(self, node: exp.Expr, found: object, used: list[Resolved], scope: Scope) -> Within:
        """The watermark that a field brings along, and those that the value of any expression holds."""
        if isinstance(found, Resolved):
            return _taken(found)
        times = any(item.column.event_time for item in used) or node.find(exp.Star)
        builds = times and any(function_name(part, self.text) in HOLDERS for part in walk_expression(node))
        if not builds and all(item.column.held == NOTHING_HELD for item in used):
            return Within()
        return within(node, Parts(self, scope))

    def _lost(self, node: exp.Expr, used: list[Resolved]) -> Lost | None:
        for item in used:
            time, name = item.column.event_time, item.column.name
            if item.fields:
                time, name = _taken(item).time, ".".join((name, *item.fields))
            if time is not None:
                return Lost(self.text.where(node), self.text.written(node), name)
        return next((item.column.lost for item in used if item.column.lost is not None), None)


@dataclass(frozen=True)
class Parts:
    """What is known of the parts of an expression in `scope`."""

    expressions: Expressions
    scope: Scope

    def name(self, node: exp.Expr) -> str:
        """Returns the function that `node` calls, in lower case; empty where it is no call."""
        return function_name(node, self.expressions.text)

    def column(self, node: exp.Expr) -> Column:
        """Returns the column that `node` would give."""
        return self.expressions.column(node, self.scope)

    def star(self, node: exp.Expr) -> tuple[Column, ...] | None:
        """Returns the columns that `*` stands for, None where they are not known."""
        if not isinstance(node, exp.Star) or any(item.columns is None for item in self.scope.relations):
            return None
        return tuple(column for item in self.scope.relations for column in item.columns or ())


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


def parts_of(node: exp.Expr) -> tuple[str, ...]:
    """Returns the parts of a name such as `a.b.c`; none where `node` is no name."""
    if isinstance(node, exp.Paren):
        return parts_of(node.this)
    if isinstance(node, exp.Dot):
        left, right = parts_of(node.this), node.expression
        return (*left, right.name) if left and isinstance(right, exp.Identifier) else ()
    if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
        return tuple(part.name for part in node.parts)
    return ()


def names_in(node: exp.Expr, text: Text) -> Iterator[exp.Expr]:
    """Gives each name in `node`, queries in it aside, the longest form of each."""
    units = set()
    for part in walk_expression(node):
        if function_name(part, text) in UNIT_FIRST:
            units |= {id(child) for child in part.iter_expressions()}
        dotted = isinstance(part.parent, exp.Dot | exp.Paren) and part.parent.this is part and parts_of(part.parent)
        if parts_of(part) and not dotted and id(part) not in units and not _is_variable(part):
            yield part


def _is_variable(node: exp.Expr) -> bool:
    """Whether a name is that of a variable of a lambda around it, which sqlglot sees in the same letter case only."""
    name, around = parts_of(node)[0].lower(), node.find_ancestor(exp.Lambda)
    while around is not None:
        if any(variable.name.lower() == name for variable in around.expressions):
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def queries_in(node: exp.Expr) -> Iterator[exp.Query]:
    """Gives each query in `node`, not those within one of them."""
    for part in walk_expression(node):
        if isinstance(part, exp.Query) and not isinstance(part, exp.Subquery):
            yield part


def function_name(node: exp.Expr, text: Text) -> str:
    """Returns the name of the function that `node` calls, as written but in lower case; empty where it is no call."""
    if isinstance(node, exp.Anonymous):
        return str(node.this).lower()
    if isinstance(node, exp.Func) and "start" in node.meta:
        return text.sql[node.meta["start"] : node.meta["end"] + 1].lower()
    return WITHOUT_PLACE.get(type(node), "")


def is_aggregate(node: exp.Expr, text: Text) -> bool:
    """Whether `node` holds an aggregate function, one with OVER aside."""
    return any(function_name(part, text) in AGGREGATES and not is_windowed(part) for part in walk_expression(node))


def output_name(node: exp.Expr, text: Text) -> str:
    """Returns the name of the column that `node` gives: its alias, its own last name, or its text."""
    if isinstance(node, exp.Alias):
        return node.alias
    parts = parts_of(node)
    if parts:
        return parts[-1]
    return function_name(node, text) if function_name(node, text) in TIME_WINDOWS else text.written(node).lower()


def walk_expression(node: exp.Expr) -> Iterator[exp.Expr]:
    """Walks `node`, not into the queries in it, which are given themselves."""
    return node.walk(prune=lambda part: isinstance(part, exp.Query) and not isinstance(part, exp.Subquery))


def is_windowed(node: exp.Expr) -> bool:
    """Whether a function has OVER, perhaps behind FILTER or IGNORE NULLS."""
    parent = node.parent
    while isinstance(parent, exp.Filter | exp.IgnoreNulls | exp.RespectNulls | exp.WithinGroup):
        parent = parent.parent
    return isinstance(parent, exp.Window)
