"""Finds names above an aggregation that are neither grouping keys nor in aggregate functions.

Spark compares expressions semantically; this module compares texts and names. It reports nothing about an expression
that may be a key in other words (`CheckAnalysis.checkValidAggregateExpression` of Spark 4.3).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.functions.known import AGGREGATES, FUNCTIONS
from sqlstream.compiler.flow.names.scope import ResolvedName, Scope
from sqlstream.compiler.flow.text import is_windowed, name_parts

Name = tuple[str, ...]
"""A resolved name: the position of its relation in FROM, its column and fields, in lower case."""


@dataclass(frozen=True)
class GroupingKeys:
    """The keys of an aggregation over `scope`.

    `names` are the keys that are names, `texts` all keys in lower case, and `parts` the columns in all other keys.
    `windows` are the names of time windows that the select list may use. `largest` is the size of the largest key, in
    nodes of its tree.
    """

    scope: Scope
    expressions: Expressions
    names: frozenset[Name] = frozenset()
    texts: frozenset[str] = frozenset()
    parts: frozenset[Name] = frozenset()
    windows: frozenset[str] = field(default_factory=frozenset)
    largest: int = 0

    def ungrouped(self, node: exp.Expr, known: frozenset[str] = frozenset()) -> Iterator[exp.Expr]:
        """Yields each name in `node` that is neither grouped by nor aggregated, except those in `known`."""
        parts = name_parts(node)
        if self._is_aggregated(node) or self._is_key(node):
            return
        if self.expressions.text.function(node) == "window_time" and self._is_own_window(node):
            yield node
        elif parts:
            yield from () if self._is_grouped(parts, known) else (node,)
        else:
            variables = node.expressions if isinstance(node, exp.Lambda) else []
            known |= {variable.name.lower() for variable in variables}
            for child in (child for child in node.iter_expressions() if child not in variables):
                yield from self._ungrouped_parts(child, known)

    def _ungrouped_parts(self, child: exp.Expr, known: frozenset[str]) -> Iterator[exp.Expr]:
        """Yields the ungrouped names in a part of an expression, except those that are part of a key."""
        for found in self.ungrouped(child, known):
            meant = self.resolved_name(name_parts(found))
            if meant is None or meant[:2] not in self.parts:
                yield found

    def _is_aggregated(self, node: exp.Expr) -> bool:
        """Returns whether `node` is an aggregate function, or is checked elsewhere."""
        if isinstance(node, exp.Query | exp.Window | exp.WithinGroup | exp.AggFunc | exp.Any | exp.Star):
            return True
        if isinstance(node, exp.Filter):
            return self._is_aggregated(node.this)
        name = self.expressions.text.function(node)
        unknown = isinstance(node, exp.Anonymous) and name not in FUNCTIONS
        return unknown or (name in AGGREGATES and not is_windowed(node))

    def _is_own_window(self, node: exp.Expr) -> bool:
        """Returns whether `node` is a function of a time window that the same aggregation adds."""
        names = [name_parts(argument) for argument in node.expressions]
        return any(len(parts) == 1 and parts[0].lower() in self.windows for parts in names)

    def _is_grouped(self, parts: tuple[str, ...], known: frozenset[str]) -> bool:
        first = parts[0].lower()
        if first in self.windows or first in known:
            return True
        meant = self.resolved_name(parts)
        if meant is None or (len(meant) > 2 and meant[:2] in self.parts):
            return True
        return any(meant[:length] in self.names for length in range(2, len(meant) + 1))

    def resolved_name(self, parts: tuple[str, ...]) -> Name | None:
        """Returns the resolved name; None if it is unknown or no column of this query's relations."""
        found = Scope(self.scope.relations).resolve(parts) if parts else None
        return self.named(found.column, parts[0], found.fields) if isinstance(found, ResolvedName) else None

    def named(self, column: Column, qualifier: str = "", fields: tuple[str, ...] = ()) -> Name:
        """Returns the resolved name of a column. Columns merged by USING have one name for all relations."""
        path = (column.name.lower(), *map(str.lower, fields))
        relations = self.scope.relations
        if any(relation.merged for relation in relations):
            return ("", *path)
        owners = [at for at, item in enumerate(relations) if any(own is column for own in item.columns or ())]
        named = [at for at in owners if (relations[at].name or "").lower() == qualifier.lower()]
        return (str((named or owners or [-1])[0]), *path)

    def _is_key(self, node: exp.Expr) -> bool:
        inner = node.unnest()
        is_larger = next(islice(inner.walk(), self.largest, None), None) is not None
        # generating the text of each part of a long chain would take quadratic time
        return not is_larger and canonical(inner, self.expressions) in self.texts


def keys_of(items: list[exp.Expr], windows: frozenset[str], scope: Scope, expressions: Expressions) -> GroupingKeys:
    """Returns the keys `items`, in which aliases and positions are already replaced by the items they refer to."""
    empty = GroupingKeys(scope, expressions)
    names: set[Name] = set()
    parts: set[Name] = set()
    for item in items:
        meant = empty.resolved_name(name_parts(item))
        if meant is not None:
            names.add(meant)
            continue
        used = (empty.resolved_name(name_parts(part)) for part in item.walk() if name_parts(part))
        parts |= {found[:2] for found in used if found is not None}
    texts = frozenset(canonical(item, expressions) for item in items)
    largest = max((sum(1 for _ in item.unnest().walk()) for item in items), default=0)
    return GroupingKeys(scope, expressions, frozenset(names), texts, frozenset(parts), windows, largest)


def canonical(node: exp.Expr, expressions: Expressions) -> str:
    """Returns the text of an expression in lower case, without extra blanks and outer parentheses."""
    return expressions.text.written(node.unnest()).lower()
