"""Resolves a name such as `a.b.c` to a column of the relations in scope, as Spark does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.sql.edits import Where

_USERS_AND_CLOCKS = ("user", "current_user", "session_user", "current_date", "current_timestamp", "current_time")
ANYWHERE = frozenset({*_USERS_AND_CLOCKS, "localtime", "current_path", "grouping__id"})
"""Names that resolve without a relation: functions without parentheses."""


@dataclass(frozen=True)
class ScopedRelation:
    """A relation in FROM: the name that qualifies its columns (None: no name), and its columns (None: unknown).

    `merged` are the columns that USING or NATURAL merged into those of another relation, in lower case.
    `qualifiers_known` is False if columns may be qualified by unknown relation names. `open_source` is the source of
    unknown columns. `origin` is the place that declares or selects the columns.
    """

    name: str | None
    columns: tuple[Column, ...] | None
    merged: frozenset[str] = frozenset()
    qualifiers_known: bool = True
    open_source: str | None = None
    origin: Where | None = None

    @cached_property
    def key(self) -> str | None:
        """The name in lower case."""
        return None if self.name is None else self.name.lower()

    @cached_property
    def _by_name(self) -> dict[str, list[Column]]:
        found: dict[str, list[Column]] = {}
        for column in self.columns or ():
            same = found.setdefault(column.name.lower(), [])
            if not any(map(column.may_be, same)):
                same.append(column)
        return found

    @cached_property
    def listed(self) -> tuple[Column, ...] | None:
        """The columns in `*`, without the merged ones; None if they are unknown."""
        if self.columns is None or not self.merged:
            return self.columns
        return tuple(column for column in self.columns if column.name.lower() not in self.merged)

    def named(self, name: str, *, qualified: bool) -> Sequence[Column]:
        """Returns the columns with that name. An unqualified name does not refer to a merged column."""
        return () if not qualified and name in self.merged else self._by_name.get(name, ())


@dataclass(frozen=True)
class ResolvedName:
    """A name that refers to a column, or to the field of it at the path `fields`."""

    column: Column
    fields: tuple[str, ...]


@dataclass(frozen=True)
class UnresolvedName:
    """A name that refers to nothing. `relation` is the relation that the first part names, without such a column.

    `candidates` are the names of existing columns, and `relations` the relations in scope, innermost query first.
    """

    relation: ScopedRelation | None
    candidates: tuple[str, ...]
    relations: tuple[ScopedRelation, ...] = ()

    def within(self, around: UnresolvedName) -> UnresolvedName:
        """Returns the result if the name refers to nothing in the outer query either."""
        if self.relation is not None:
            return self
        relations = (*self.relations, *around.relations)
        return UnresolvedName(around.relation, (*self.candidates, *around.candidates), relations)


@dataclass(frozen=True)
class Ambiguous:
    """A name that refers to columns of several relations, given by name; None for a relation without a name."""

    relations: tuple[str | None, ...]


Resolution = ResolvedName | UnresolvedName | Ambiguous | None
"""What a name refers to; None if that is unknown."""


@dataclass(frozen=True)
class Scope:
    """The relations in scope, the aliases of the select list so far, and the scope of the outer query.

    `_found` caches the names found in the relations.
    """

    relations: tuple[ScopedRelation, ...] = ()
    aliases: dict[str, Column] = field(default_factory=dict)
    outer: Scope | None = None
    _found: dict[tuple[str, ...], Resolution] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_relations(self, *more: ScopedRelation) -> Scope:
        """Returns the scope with more relations."""
        return replace(self, relations=(*self.relations, *more))

    def with_aliases(self) -> Scope:
        """Returns a copy with separate aliases and the same cache content."""
        scope = Scope(self.relations, dict(self.aliases), self.outer)
        scope._found.update(self._found)
        return scope

    def star(self, qualifier: str | None = None) -> tuple[Column, ...] | None:
        """Returns the columns of `*`, or of `t.*` with `qualifier` in lower case; None if they are unknown."""
        meant = [item for item in self.relations if qualifier in (None, item.key)]
        lists = [item.listed if qualifier is None else item.columns for item in meant]
        known = [columns for columns in lists if columns is not None]
        return tuple(chain.from_iterable(known)) if meant and len(known) == len(lists) else None

    def resolve(self, parts: tuple[str, ...]) -> Resolution:
        """Returns what the name with these parts refers to; None for no parts, and if it is unknown."""
        if not parts:
            return None
        found: Resolution = self._found.get(parts)
        if found is not None:
            return found
        names = tuple(part.lower() for part in parts)
        found = self._of_relations(names)
        if found is not None:
            self._found[parts] = found
            return found
        found = self._besides(names)
        if not isinstance(found, UnresolvedName):
            return found
        if self.outer is not None:
            around = self.outer.resolve(parts)
            return found.within(around) if isinstance(around, UnresolvedName) else around
        return None if names[0] in ANYWHERE else found

    def open_origin(self, parts: tuple[str, ...]) -> tuple[str, str] | None:
        """Returns the (node id, column) of a source with unknown columns to which a name refers; None if uncertain."""
        unknown = [relation for relation in self.relations if relation.columns is None]
        named = [relation for relation in self.relations if len(parts) > 1 and relation.key == parts[0].lower()]
        meant, name = (named, parts[1]) if named else (unknown, parts[0])
        if len(meant) == 1 and meant[0].open_source and (named or name.lower() not in self.aliases):
            return meant[0].open_source, name
        return None

    def _of_relations(self, names: tuple[str, ...]) -> Resolution:
        for used in (2, 1) if len(names) > 1 else (1,):
            matches = [
                (relation.name, column)
                for relation in self.relations
                if used == 1 or relation.key == names[0]
                for column in relation.named(names[used - 1], qualified=used > 1)
            ]
            if len(matches) > 1:
                return Ambiguous(tuple(name for name, _ in matches))
            if matches:
                return ResolvedName(matches[0][1], names[used:])
        return None

    def _besides(self, names: tuple[str, ...]) -> Resolution:
        """Returns what a name refers to that is no column of the relations."""
        if any(relation.columns is None for relation in self.relations):
            return None
        if len(names) > 1 and not all(relation.qualifiers_known for relation in self.relations):
            return None
        if names[0] in self.aliases:
            return ResolvedName(self.aliases[names[0]], names[1:])
        return None if self._may_be_generated(names) else self._missing(names)

    def _may_be_generated(self, names: tuple[str, ...]) -> bool:
        """Returns whether the name may be one that Spark generates for a column without an alias."""
        if any(column.may_be_called(names[0]) for column in self.aliases.values()):
            return True
        columns = [
            (item.key, column) for item in self.relations for column in item.columns or () if column.is_generated
        ]
        qualified = [column for key, column in columns if len(names) > 1 and key == names[0]]
        return any(column.may_be_called(names[0]) for _, column in columns) or any(
            column.may_be_called(names[1]) for column in qualified
        )

    def _missing(self, names: tuple[str, ...]) -> UnresolvedName:
        named = next((item for item in self.relations if item.key == names[0]), None) if len(names) > 1 else None
        searched = self.relations if named is None else (named,)
        candidates = [column.name for relation in searched for column in relation.columns or ()]
        candidates += [column.name for column in self.aliases.values()] if named is None else []
        return UnresolvedName(named, tuple(candidates), self.relations)
