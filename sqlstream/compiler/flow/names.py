"""Resolves a name such as `a.b.c` to a column of the relations in scope, as Spark does, and explains unknown names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.functions import FUNCTIONS
from sqlstream.compiler.graph import MODEL, SOURCE, STORED, kind_of
from sqlstream.compiler.sql.edits import ORIGIN, SqlProblem, Where
from sqlstream.compiler.sql.intervals import NEGATIVE, NO_DELAY
from sqlstream.project.types.data_types import Array, Struct
from sqlstream.project.wording import did_you_mean, nearest, quoted, quoted_list

_USERS_AND_CLOCKS = ("user", "current_user", "session_user", "current_date", "current_timestamp", "current_time")
ANYWHERE = frozenset({*_USERS_AND_CLOCKS, "localtime", "current_path", "grouping__id"})
"""Names that resolve without a relation: functions without parentheses."""

MOST_COLUMNS = 10
"""The most columns that a message lists for one relation; half as many for each of several."""

MOST_RELATIONS = 4
"""The most relations that a message lists."""

NO_RELATION = "this query reads no relation"
ADD_FROM = "add FROM with a relation that has this column"

METADATA = "_metadata"
"""The hidden column of Spark's file sources, which a view does not have."""


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
            # `select a, a` has one attribute twice, so the name is not ambiguous
            if not same or not any(map(column.may_be, same)):
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
        # columns hide aliases of the select list, and both hide the outer query
        found = self._of_relations(names)
        if found is not None:
            # only these: the select list still adds aliases
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
        # `a.b` is the column b of the relation a if there is one, otherwise the field b of the column a
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


def name_problem(found: UnresolvedName | Ambiguous, parts: tuple[str, ...], where: Where) -> SqlProblem:
    """Returns the problem of a name that refers to no column, or to several."""
    if isinstance(found, Ambiguous):
        return _ambiguous(found, ".".join(parts), where.offset)
    name = parts[0] if found.relation is None else parts[1]
    asked = found.relations if found.relation is None else (found.relation,)
    relations = [item for item in asked if item.name is not None or item.origin is not None]
    called = [_called(item, where.model) for item in relations]
    if found.relation is None and len(parts) > 1:
        return _unknown_alias(found, parts, relations, called, where)
    what = f"{quoted(name)} is not a column {_of_any(called)}"
    if name.lower() == METADATA:
        return _metadata_problem(what, where.offset)
    most = MOST_COLUMNS if len(relations) == 1 else MOST_COLUMNS // 2
    listed = [f"{_has(item)} {quoted_list([c.name for c in item.columns or ()], most=most)}" for item in relations]
    why = "; ".join(listed[:MOST_RELATIONS]) or NO_RELATION
    fix = did_you_mean(name, found.candidates) if found.candidates or relations else ADD_FROM
    return SqlProblem(where.offset, "unknown-column", what, why, fix, origins=_origins(relations))


def _unknown_alias(
    found: UnresolvedName,
    parts: tuple[str, ...],
    relations: Sequence[ScopedRelation],
    called: Sequence[str],
    where: Where,
) -> SqlProblem:
    """Returns the problem of `x.column` if no relation has the name `x`."""
    what = f"{quoted(parts[0])} is not a relation or column of this query"
    if parts[0].lower() == METADATA:
        return _metadata_problem(what, where.offset)
    names = [item.name for item in relations if item.name]
    shown = [
        f"{quoted(item.name or '')} ({f'{text}, ' if text != quoted(item.name or '') else ''}{ORIGIN})"
        for item, text in zip(relations, called, strict=True)
        if item.origin is not None
    ]
    why = f"the relations in scope are {' and '.join(shown[:MOST_RELATIONS])}" if shown else NO_RELATION
    having = [item.name for item in relations if item.name and item.named(parts[1].lower(), qualified=True)]
    close = nearest(parts[0], [*names, *found.candidates])
    fix = did_you_mean(parts[0], close or names) if close or names else ADD_FROM
    if having and not close:
        fix = f"did you mean {' or '.join(quoted(f'{name}.{parts[1]}') for name in having[:MOST_RELATIONS])}?"
    return SqlProblem(where.offset, "unknown-column", what, why, fix, origins=_origins(relations))


def _origins(relations: Sequence[ScopedRelation]) -> tuple[Where, ...]:
    return tuple(item.origin for item in relations[:MOST_RELATIONS] if item.origin is not None)


def _called(relation: ScopedRelation, model: str) -> str:
    """Returns the name of a relation in a message about `model`: "source `shop.orders`", or the name in the query."""
    if relation.origin is None or relation.origin.model == model:
        return quoted(relation.name) if relation.name else "the subquery"
    kind, _, *parts = relation.origin.model.split(".")
    return f"{MODEL if kind == STORED else kind} {quoted('.'.join(parts))}"


def _has(relation: ScopedRelation) -> str:
    """Returns the beginning of a list of the relation's columns."""
    if relation.origin is None:
        return f"{quoted(relation.name or '')} has"
    return f"{ORIGIN} {'declares' if kind_of(relation.origin.model) == SOURCE else 'has'}"


def _of_any(called: Sequence[str]) -> str:
    if len(called) > MOST_RELATIONS:
        return f"of any of the {len(called)} relations in scope"
    return f"of {' or '.join(dict.fromkeys(called))}" if called else "here"


def _metadata_problem(what: str, offset: int) -> SqlProblem:
    why = "a model reads a source as a view, which has only the declared columns and no hidden ones"
    fix = "use input_file_name() for the file path of a row"
    return SqlProblem(offset, "unknown-column", what, why, fix)


def _ambiguous(found: Ambiguous, written: str, offset: int) -> SqlProblem:
    names = list(dict.fromkeys(found.relations))
    own = [name for name in names if name and found.relations.count(name) == 1]
    fix = f"write, for example, {quoted(f'{own[0]}.{written}')}" if own else "give the columns unique names with AS"
    shown = [quoted(name) if name else "a relation without an alias" for name in names]
    what, why = f"column {quoted(written)} exists in more than one relation", "have a column with that name"
    if len(names) == 1:
        what, why = f"more than one column has the name {quoted(written)}", "has several columns with that name"
    return SqlProblem(offset, "ambiguous-column", what, f"{' and '.join(shown)} {why}", fix)


def field_problems(found: ResolvedName, offset: int) -> Iterator[SqlProblem]:
    """Yields a problem for the first field that its struct does not have, if the types are known."""
    kind, path = found.column.type, found.column.name
    for name in found.fields:
        struct = kind.element if isinstance(kind, Array) else kind
        if not isinstance(struct, Struct):
            return
        field = struct.field(name)
        if field is None:
            names = [item.name for item in struct.fields]
            why = f"its fields are {quoted_list(names, most=20)}"
            what = f"{quoted(path)} has no field {quoted(name)}"
            yield SqlProblem(offset, "unknown-field", what, why, did_you_mean(name, names))
            return
        kind, path = field.type, f"{path}.{name}"


def function_problem(name: str, offset: int, own: Iterable[str] = ()) -> SqlProblem:
    """Returns the problem of a function that is neither in Spark nor in `own`, the functions of the project."""
    close = nearest(name, [*own, *sorted(FUNCTIONS)])
    what = f"{quoted(name)} is not a Spark function"
    why = "the target adds no packages, jars or extensions that could provide it"
    guess = f"did you mean {' or '.join(map(quoted, close))}?"
    fix = guess if close else "see the list of functions in Spark's SQL reference"
    return SqlProblem(offset, "unknown-function", what, why, fix)


def grouping_problem(written: str, keys: Sequence[str], offset: int) -> SqlProblem:
    """Returns the problem of a column that an aggregation neither groups by nor aggregates."""
    groups = f"the query groups by {quoted_list(keys)}" if keys else "without GROUP BY, all rows are one group"
    what = f"{quoted(written)} must be in GROUP BY or in an aggregate function"
    why = f"{groups}, and the rows of a group can have different values of {quoted(written)}"
    fix = f"add {quoted(written)} to GROUP BY, or aggregate it: any_value({written}), max({written})"
    return SqlProblem(offset, "not-grouped", what, why, fix)


def stage_problem(keyword: str, offset: int) -> SqlProblem:
    """Returns the problem of a pipe syntax stage that Spark does not have."""
    what = f"pipe syntax has no stage {keyword}"
    why = (
        "the stages of Spark's pipe syntax are SELECT, EXTEND, SET, DROP, AS, WHERE, AGGREGATE, JOIN, ORDER BY, LIMIT, "
        "OFFSET, UNION, PIVOT, UNPIVOT and TABLESAMPLE"
    )
    fix = "use |> EXTEND explode(...) AS name, or |> JOIN LATERAL explode(...) AS t(name)"
    return SqlProblem(offset, "sql-syntax", what, why, fix)


def version_problem(offset: int) -> SqlProblem:
    """Returns the problem of a view that is read at a timestamp or version."""
    what = "this relation cannot be read at a version or a timestamp"
    why = "Spark reads sources, seeds, models and CTEs as views, and views have no versions"
    fix = "set the version in the options of the source, if its format supports versions"
    return SqlProblem(offset, "time-travel", what, why, fix)


def variant_key_problem(written: str, where: Where) -> SqlProblem:
    """Returns the problem of a grouping key that is or contains a VARIANT."""
    what = f"{quoted(written)} contains a VARIANT, so Spark cannot group by it"
    why = "Spark cannot compare VARIANT values"
    fix = f"group by a part of it, for example {written}:name::string, or by to_json({written})"
    return SqlProblem(where.offset, "type-mismatch", what, why, fix)


def negative_delay(delay: str, offset: int) -> SqlProblem:
    """Returns the problem of a watermark clause whose delay is negative."""
    return SqlProblem(offset, "misplaced-watermark", f"the delay {quoted(delay)} is negative", NEGATIVE, NO_DELAY)
