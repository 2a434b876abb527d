"""Which column a name means: Spark's resolution of `a.b.c` among the relations in sight."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from sqlstream.compiler.flow.columns import Column, Where

ANYWHERE = frozenset(
    {
        *("user", "current_user", "session_user", "current_date", "current_timestamp", "current_time"),
        *("localtime", "current_path", "grouping__id"),
    }
)
"""Names that mean something where no relation has them: functions without `()`."""


@dataclass(frozen=True)
class Visible:
    """A relation in FROM: the name that qualifies its columns, None where it has none, and its columns, None where they
    are not known. `merged` are those that USING or NATURAL has made one with another relation's, in lower case.
    `qualifiers_known` is False where columns may go by the names of relations that are not known. `open_source` is the
    source that columns which are not known are of. `origin` is where the columns are declared or selected.
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
            found.setdefault(column.name.lower(), []).append(column)
        return found

    @cached_property
    def listed(self) -> tuple[Column, ...] | None:
        """The columns that `*` lists, those that USING has merged once; None where they are not known."""
        if self.columns is None or not self.merged:
            return self.columns
        return tuple(column for column in self.columns if column.name.lower() not in self.merged)

    def named(self, name: str, *, qualified: bool) -> Sequence[Column]:
        """Returns the columns of that name; an unqualified one does not mean a merged column."""
        return () if not qualified and name in self.merged else self._by_name.get(name, ())


@dataclass(frozen=True)
class Resolved:
    """A name's column, and the fields of it that the rest of the name asks for."""

    column: Column
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Missing:
    """A name that means nothing: `relation` where its first part names a relation, which has no such column.

    `candidates` are the names that it could have been, `relations` those in sight, the nearest first.
    """

    relation: Visible | None
    candidates: tuple[str, ...]
    relations: tuple[Visible, ...] = ()

    def within(self, around: Missing) -> Missing:
        """Returns this name, which means nothing in the query around it either."""
        if self.relation is not None:
            return self
        relations = (*self.relations, *around.relations)
        return Missing(around.relation, (*self.candidates, *around.candidates), relations)


@dataclass(frozen=True)
class Ambiguous:
    """A name that means several columns, of the relations named; None for one without a name."""

    relations: tuple[str | None, ...]


Resolution = Resolved | Missing | Ambiguous | None
"""What a name means; None where it cannot be known."""


@dataclass(frozen=True)
class Scope:
    """The relations in sight, the aliases of the select list so far, and the scope around a subquery.

    `_found` are the names that have been found among the relations.
    """

    relations: tuple[Visible, ...] = ()
    aliases: dict[str, Column] = field(default_factory=dict)
    outer: Scope | None = None
    _found: dict[tuple[str, ...], Resolution] = field(default_factory=dict, init=False, repr=False, compare=False)

    def with_relations(self, *more: Visible) -> Scope:
        """Returns the scope with more relations."""
        return replace(self, relations=(*self.relations, *more))

    def with_aliases(self) -> Scope:
        """Returns the scope with aliases of its own, and what has been found so far."""
        scope = Scope(self.relations, dict(self.aliases), self.outer)
        scope._found.update(self._found)
        return scope

    def star(self, qualifier: str | None = None) -> tuple[Column, ...] | None:
        """Returns what `*` stands for, or `t.*` with `qualifier` in lower case; None where that is not known."""
        meant = [item for item in self.relations if qualifier in (None, item.key)]
        lists = [item.listed if qualifier is None else item.columns for item in meant]
        known = [columns for columns in lists if columns is not None]
        return tuple(chain.from_iterable(known)) if meant and len(known) == len(lists) else None

    def resolve(self, parts: tuple[str, ...]) -> Resolution:
        """Returns what the name with these parts means; None where there are none, for what is no name."""
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
        if not isinstance(found, Missing):
            return found
        if self.outer is not None:
            around = self.outer.resolve(parts)
            return found.within(around) if isinstance(around, Missing) else around
        return None if names[0] in ANYWHERE else found

    def open_origin(self, parts: tuple[str, ...]) -> tuple[str, str] | None:
        """Returns the column of a source that a name means which `resolve` cannot tell, as (node id, column)."""
        unknown = [relation for relation in self.relations if relation.columns is None]
        named = [relation for relation in self.relations if len(parts) > 1 and relation.key == parts[0].lower()]
        meant, name = (named, parts[1]) if named else (unknown, parts[0])
        if len(meant) == 1 and meant[0].open_source and (named or name.lower() not in self.aliases):
            return meant[0].open_source, name
        return None

    def _of_relations(self, names: tuple[str, ...]) -> Resolution:
        for used in (2, 1) if len(names) > 1 else (1,):
            matches = self._qualified(names) if used > 1 else self._plain(names)
            if len(matches) > 1:
                return Ambiguous(tuple(name for name, _ in matches))
            if matches:
                return Resolved(matches[0][1], names[used:])
        return None

    def _besides(self, names: tuple[str, ...]) -> Resolution:
        """What a name means that is no column of the relations."""
        if any(relation.columns is None for relation in self.relations):
            return None
        if len(names) > 1 and not all(relation.qualifiers_known for relation in self.relations):
            return None
        if names[0] in self.aliases:
            return Resolved(self.aliases[names[0]], names[1:])
        return self._missing(names)

    def _qualified(self, names: tuple[str, ...]) -> list[tuple[str | None, Column]]:
        return [
            (relation.name, column)
            for relation in self.relations
            if relation.key == names[0]
            for column in relation.named(names[1], qualified=True)
        ]

    def _plain(self, names: tuple[str, ...]) -> list[tuple[str | None, Column]]:
        return [
            (relation.name, column)
            for relation in self.relations
            for column in relation.named(names[0], qualified=False)
        ]

    def _missing(self, names: tuple[str, ...]) -> Missing:
        named = [item for item in self.relations if item.key == names[0]]
        if len(names) > 1 and named:
            return Missing(named[0], tuple(column.name for column in named[0].columns or ()), self.relations)
        return Missing(None, tuple(self._names()), self.relations)

    def _names(self) -> Iterator[str]:
        for relation in self.relations:
            yield from (column.name for column in relation.columns or ())
        yield from (column.name for column in self.aliases.values())
