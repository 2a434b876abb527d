"""Whether the expressions above an aggregation are made of what it groups by and of aggregate functions.

Spark compares expressions by their meaning, of which this knows little: where an expression could be a key written in
another way, nothing is said (`CheckAnalysis.checkValidAggregateExpression` of Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions.known import AGGREGATES, FUNCTIONS
from sqlstream.compiler.flow.names.scope import Resolved, Scope
from sqlstream.compiler.flow.text import is_windowed, parts_of

Name = tuple[str, ...]
"""What a name means: the place of its relation in FROM, its column and fields, in lower case."""


@dataclass(frozen=True)
class GroupingKeys:
    """The keys of an aggregation over `scope`.

    `names` are those that are names, `texts` all as they are written in lower case, and `parts` the columns in those
    that are more than a name. `largest` is the size of the largest of them, in nodes of its tree. `windows` are the
    names of time windows among them, which the select list may use.
    """

    scope: Scope
    expressions: Expressions
    names: frozenset[Name] = frozenset()
    texts: frozenset[str] = frozenset()
    parts: frozenset[Name] = frozenset()
    windows: frozenset[str] = field(default_factory=frozenset)
    largest: int = 0

    def ungrouped(self, node: exp.Expr, known: frozenset[str] = frozenset()) -> Iterator[exp.Expr]:
        """Gives each name in `node` that is neither grouped by nor aggregated; `known` are names that are neither."""
        if self._is_made(node) or self._is_key(node):
            return
        if self.expressions.text.function(node) == "window_time" and self._is_own_window(node):
            yield node
            return
        parts = parts_of(node)
        if parts:
            if not self._is_grouped(parts, known):
                yield node
            return
        bound = (
            frozenset(item.name.lower() for item in node.expressions) if isinstance(node, exp.Lambda) else frozenset()
        )
        for child in node.iter_expressions():
            if not (isinstance(node, exp.Lambda) and child in node.expressions):
                yield from self._within(child, known | bound)

    def _within(self, child: exp.Expr, known: frozenset[str]) -> Iterator[exp.Expr]:
        """The ungrouped names in a part of an expression, but for those that a key has in an expression of its own."""
        for found in self.ungrouped(child, known):
            meant = self.meaning(parts_of(found))
            if meant is None or meant[:2] not in self.parts:
                yield found

    def _is_made(self, node: exp.Expr) -> bool:
        """Whether `node` is an aggregate function, or something that is judged elsewhere."""
        if isinstance(node, exp.Query | exp.Window | exp.WithinGroup | exp.AggFunc | exp.Any | exp.Star):
            return True
        if isinstance(node, exp.Filter):
            return self._is_made(node.this)
        name = self.expressions.text.function(node)
        unknown = isinstance(node, exp.Anonymous) and name not in FUNCTIONS
        return unknown or (name in AGGREGATES and not is_windowed(node))

    def _is_own_window(self, node: exp.Expr) -> bool:
        """Whether `node` is a function of the time window that the aggregation makes itself."""
        names = [parts_of(argument) for argument in node.expressions]
        return any(len(parts) == 1 and parts[0].lower() in self.windows for parts in names)

    def _is_grouped(self, parts: tuple[str, ...], known: frozenset[str]) -> bool:
        first = parts[0].lower()
        if first in self.windows or first in known:
            return True
        meant = self.meaning(parts)
        if meant is None:
            return True
        if len(meant) > 2 and meant[:2] in self.parts:
            return True
        return any(meant[:length] in self.names for length in range(2, len(meant) + 1))

    def meaning(self, parts: tuple[str, ...]) -> Name | None:
        """Returns what a name means; None where it is no column of this query's relations, or it cannot be known."""
        found = Scope(self.scope.relations).resolve(parts) if parts else None
        return None if not isinstance(found, Resolved) else self.named(found.column, parts[0], found.fields)

    def named(self, column: Column, qualifier: str = "", fields: tuple[str, ...] = ()) -> Name:
        """Returns what a column of a relation means. Columns of USING mean the same in all relations."""
        name = column.name.lower()
        relations = self.scope.relations
        if any(relation.merged for relation in relations):
            return ("", name, *map(str.lower, fields))
        holding = [
            place for place, relation in enumerate(relations) if any(item is column for item in relation.columns or ())
        ]
        called = [place for place in holding if (relations[place].name or "").lower() == qualifier.lower()]
        place = (called or holding or [-1])[0]
        return (str(place), name, *map(str.lower, fields))

    def _is_key(self, node: exp.Expr) -> bool:
        inner = unwrapped(node)
        is_larger = next(islice(inner.walk(), self.largest, None), None) is not None
        # the text of each part of a long chain would take quadratic time
        return not is_larger and canonical(inner, self.expressions) in self.texts


def keys_of(items: list[exp.Expr], windows: frozenset[str], scope: Scope, expressions: Expressions) -> GroupingKeys:
    """Returns the keys `items`, aliases and positions among them replaced by what they stand for."""
    empty = GroupingKeys(scope, expressions)
    names: set[Name] = set()
    parts: set[Name] = set()
    for item in items:
        meant = empty.meaning(parts_of(item))
        if meant is not None:
            names.add(meant)
            continue
        used = (empty.meaning(parts_of(part)) for part in item.walk() if parts_of(part))
        parts |= {found[:2] for found in used if found is not None}
    texts = frozenset(canonical(item, expressions) for item in items)
    largest = max((sum(1 for _ in unwrapped(item).walk()) for item in items), default=0)
    return GroupingKeys(scope, expressions, frozenset(names), texts, frozenset(parts), windows, largest)


def canonical(node: exp.Expr, expressions: Expressions) -> str:
    """Returns the text of an expression without regard to letter case, blanks and outer parentheses."""
    return expressions.text.written(unwrapped(node)).lower()


def unwrapped(node: exp.Expr) -> exp.Expr:
    """Returns an expression without its outer parentheses."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node
