"""GROUP BY: its keys as columns, the names that it adds to the scope of the select list, and the names above it that
are neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column, Columns
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, WINDOWS, Expressions
from sqlstream.compiler.flow.expressions.misplaced_functions import Clause
from sqlstream.compiler.flow.functions import AGGREGATES, FUNCTIONS
from sqlstream.compiler.flow.names import (
    Ambiguous,
    ResolvedName,
    Scope,
    ScopedRelation,
    UnresolvedName,
    grouping_problem,
    variant_key_problem,
)
from sqlstream.compiler.flow.nodes import Key
from sqlstream.compiler.flow.text import Text, is_windowed, name_parts
from sqlstream.compiler.flow.type_rules import contains
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.numbers import plural

SETS = {exp.Rollup: "rollup", exp.Cube: "cube", exp.GroupingSets: "grouping sets"}
"""sqlglot's classes for grouping sets, and their names."""

UNKNOWN = frozenset({"unknown-column", "unknown-field", "unknown-function", "ambiguous-column"})
"""Codes of problems that make a grouping key unknown."""


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY, and the expressions `items` to which they refer.

    `sets` is the kind of its grouping sets, or empty. `session` means that a key is a session window. `windows` are the
    names of the time windows that it adds as columns, and `scope` includes them. `is_faulty` means that a key is
    unknown, from which other problems of the grouping may follow.
    """

    keys: tuple[Key, ...]
    items: tuple[exp.Expr, ...]
    sets: str
    session: bool
    windows: frozenset[str]
    scope: Scope
    is_faulty: bool = False


def grouping_of(select: exp.Select, scope: Scope, expressions: Expressions) -> Grouping | None:
    """Returns the grouping of `select`; None if it has no GROUP BY."""
    clause = select.args.get("group")
    if clause is None:
        return None
    # a key in several grouping sets is one key
    found = _keys_of(clause, select, scope, expressions)
    keyed = list({expressions.text.written(item): (item, meant) for item, meant in found}.values())
    written = [item for item, _ in keyed]
    items = tuple(meant.unalias() for _, meant in keyed)
    called = {expressions.text.function(item) for item in items}
    added = _added_windows(items, scope, expressions)
    inner = scope.with_relations(ScopedRelation(None, added)) if added else scope
    always = _in_every_set(clause, expressions)
    unclear = _may_be_generated(items, select, inner, expressions)
    if unclear:
        inner = replace(inner, aliases={**inner.aliases, **unclear})
    before = len(expressions.problems)
    # ALL repeats items of the select list, which are checked there
    for item, meant in () if clause.args.get("all") else zip(written, items, strict=True):
        check_expression(expressions, meant, inner, _clause(item, meant))
    wrong = UNKNOWN & {problem.code for problem in expressions.problems[before:]}
    if "unknown-function" in wrong:
        inner = inner.with_relations(_possible_windows(inner))
    keys = tuple(_key(item, meant, inner, expressions, always) for item, meant in zip(written, items, strict=True))
    is_faulty = bool(wrong or unclear)
    if is_faulty:
        # an unknown key may have a watermark, so no rule should miss one
        keys = tuple(replace(key, column=replace(key.column, may_carry=True), is_column=True) for key in keys)
    sets = next((name for kind, name in SETS.items() if clause.find(kind)), "")
    own = frozenset(column.name.lower() for column in added)
    return Grouping(keys, items, sets, "session_window" in called, own, inner, is_faulty)


def _added_windows(items: Sequence[exp.Expr], scope: Scope, expressions: Expressions) -> Columns:
    """Returns the columns of the time windows among `items`, unless a relation has a column with the same name."""
    windows = [expressions.column(item, scope) for item in items if expressions.text.function(item) in WINDOWS]
    names = {column.name.lower() for item in scope.relations for column in item.columns or ()}
    return tuple(column for column in windows if column.name.lower() not in names)


def _possible_windows(scope: Scope) -> ScopedRelation:
    """Returns the columns that a misspelt `window` or `session_window` in GROUP BY may be meant to add."""
    names = sorted(name for name in WINDOWS if isinstance(scope.resolve((name,)), UnresolvedName))
    return ScopedRelation(None, tuple(Column(name, None) for name in names))


def ungrouped(
    select: exp.Select,
    grouping: Grouping | None,
    scope: Scope,
    output: Columns | None,
    expressions: Expressions,
) -> Iterator[SqlProblem]:
    """Yields a problem for each column above an aggregation that is neither grouped by nor aggregated.

    `scope` is that of FROM. `output` are the columns of the select list, which HAVING and ORDER BY may use.
    """
    if grouping is not None and (grouping.sets or grouping.is_faulty):
        return
    text, clause = expressions.text, select.args.get("group")
    items = [] if grouping is None else list(grouping.items)
    keys = keys_of(items, frozenset() if grouping is None else grouping.windows, scope, expressions)
    texts = [text.written(item) for item in items]
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        names = [_name(node, text) for node in keys.ungrouped(inner)]
        names += [] if clause is not None and clause.args.get("all") else _ungrouped_of_star(inner, keys)
        yield from (grouping_problem(name, texts, text.where(item).offset) for name in names[:1])
    known = frozenset(column.name.lower() for column in output or ())
    above = [clause for clause in (select.args.get("having"), select.args.get("order")) if clause is not None]
    for node in (node for clause in above for node in keys.ungrouped(clause, known) if output is not None):
        yield grouping_problem(_name(node, text), texts, text.where(node).offset)


def _name(node: exp.Expr, text: Text) -> str:
    return ".".join(name_parts(node)) or text.written(node)


def _ungrouped_of_star(item: exp.Expr, keys: GroupingKeys) -> list[str]:
    """Returns the names of the columns of `*` or `t.*` that are no keys."""
    starred = _starred(item, keys.scope)
    return [column.name for relation, column in starred if keys.named(column, relation.name or "") not in keys.names]


def _starred(item: exp.Expr, scope: Scope) -> Iterator[tuple[ScopedRelation, Column]]:
    """Yields the columns of `*` or `t.*`, each with its relation; none for other items."""
    star = _star_of(item)
    names = [part.name.lower() for part in item.parts[:-1]] if isinstance(item, exp.Column) else []
    if star is None or len(names) > 1:
        return
    left_out = {part.name.lower() for part in star.args.get("except_") or ()}
    qualifier = next(iter(names), None)
    for relation in (relation for relation in scope.relations if qualifier in (None, relation.key)):
        kept = (column for column in relation.columns or () if column.name.lower() not in left_out | relation.merged)
        yield from ((relation, column) for column in kept)


def position_problems(select: exp.Select, output: Columns | None, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each number in GROUP BY or ORDER BY that is not a position in the select list."""
    group, order = select.args.get("group"), select.args.get("order")
    stars = any(item.is_star for item in select.expressions)
    keys = [] if group is None else group.expressions
    counted_off = [item for item in keys if _position(item) is not None]
    if stars and counted_off:
        what = "GROUP BY uses a position, but the select list contains a star"
        why = "Spark does not allow positions in GROUP BY together with a star"
        yield text.problem(counted_off[0], "bad-position", what, why, "use column names")
    elif not stars:
        yield from _out_of_range(keys, len(select.expressions), "GROUP BY", text)
    if order is not None and output is not None:
        yield from _out_of_range([item.this for item in order.expressions], len(output), "ORDER BY", text)


def _out_of_range(items: list[exp.Expr], columns: int, clause: str, text: Text) -> Iterator[SqlProblem]:
    for item in items:
        place = _position(item)
        if place is not None and not 1 <= place <= columns:
            what = f"{clause} {place} is not a position in the select list"
            why = f"a number in {clause} is a position in the select list, which has {plural(columns, 'column')}"
            yield text.problem(item, "bad-position", what, why, "use the column name")


def _position(item: exp.Expr) -> int | None:
    """Returns the number that an item of GROUP BY or ORDER BY is; None for other items."""
    sign, inner = (-1, item.this) if isinstance(item, exp.Neg) else (1, item)
    is_number = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdecimal()
    return sign * int(inner.name) if is_number else None


def _keys_of(
    clause: exp.Expr, select: exp.Select, scope: Scope, expressions: Expressions
) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """Yields the keys as written, each with the expression to which it refers. ALL is each item without aggregates."""
    for item in select.expressions if clause.args.get("all") else ():
        if _star_of(item) is not None:
            start = expressions.text.where(item).offset
            yield from ((column, column) for column in _columns_of_star(item, start, scope))
        elif not expressions.text.is_aggregate(item):
            yield item.unalias(), item
    for item in clause.expressions:
        yield from ((part, _referenced(part, select, scope, expressions)) for part in _parts(item))


def _star_of(item: exp.Expr) -> exp.Star | None:
    """Returns the star of an item `*` or `t.*` of a select list; None for other items."""
    star = item.this if isinstance(item, exp.Column) else item
    return star if isinstance(star, exp.Star) else None


def _columns_of_star(item: exp.Expr, start: int, scope: Scope) -> Iterator[exp.Expr]:
    """Yields a name for each column of `*` or `t.*`, with the place of the star."""
    for relation, column in _starred(item, scope):
        qualifier = None if relation.name is None else exp.Identifier(this=relation.name, quoted=False)
        name = exp.Column(this=exp.Identifier(this=column.name, quoted=False), table=qualifier)
        name.meta["start"] = start
        yield name


def _in_every_set(clause: exp.Expr, expressions: Expressions) -> frozenset[str] | None:
    """Returns the texts of the keys that are in each grouping set; None if there are no grouping sets."""
    sets = [found for found in clause.find_all(*SETS) if found.parent is clause]
    if not sets:
        return None
    always: set[str] = set()
    if all(found.arg_key == "expressions" for found in sets):
        always |= {expressions.text.written(item) for item in clause.expressions if not isinstance(item, tuple(SETS))}
    for found in sets:
        if isinstance(found, exp.GroupingSets) and found.expressions:
            members = [{expressions.text.written(part) for part in _parts(item)} for item in found.expressions]
            plain = not any(isinstance(item, tuple(SETS)) for item in found.expressions)
            always |= set.intersection(*members) if plain else set()
    return frozenset(always)


def _parts(item: exp.Expr) -> Iterator[exp.Expr]:
    """Yields the keys in grouping sets, or the key itself."""
    if isinstance(item, (*SETS, exp.Tuple)):
        for part in item.expressions:
            yield from _parts(part)
    elif isinstance(item, exp.Paren):
        yield from _parts(item.this)
    else:
        yield item


def _key(item: exp.Expr, meant: exp.Expr, scope: Scope, expressions: Expressions, always: frozenset[str] | None) -> Key:
    column = expressions.column(meant, scope)
    if contains(column.type, "variant"):
        expressions.problems.append(variant_key_problem(expressions.text.written(meant), expressions.text.where(item)))
    found = scope.resolve(name_parts(meant))
    is_column = isinstance(found, UnresolvedName | Ambiguous) or (isinstance(found, ResolvedName) and not found.fields)
    window = expressions.text.function(meant) in TIME_WINDOWS
    in_every_set = always is None or expressions.text.written(item) in always
    where, part = expressions.text.where(item), expressions.text.part(meant, scope)
    return Key(expressions.text.written(meant), column, is_column or window, where, in_every_set, part)


def _clause(item: exp.Expr, meant: exp.Expr) -> Clause:
    """Returns the clause of a key. A generator can be a key only as a position in the select list."""
    return Clause.POSITION if item is not meant and not name_parts(item) else Clause.GROUP_BY


def _referenced(item: exp.Expr, select: exp.Select, scope: Scope, expressions: Expressions) -> exp.Expr:
    """Returns the item of the select list to which a position or a name refers; other keys unchanged."""
    if isinstance(item, exp.Literal) and not item.is_string and str(item.this).isdigit():
        at = int(item.this) - 1
        return select.expressions[at] if 0 <= at < len(select.expressions) else item
    parts = name_parts(item)
    if len(parts) != 1 or not isinstance(scope.resolve(parts), UnresolvedName):  # FROM hides the select list's names
        return item
    chosen = [(other, _item_name(other, scope, expressions)) for other in select.expressions]
    exact = (other for other, named in chosen if named and named.name.lower() == parts[0].lower())
    possible = [other for other, named in chosen if named and named.may_be_called(parts[0])]
    return next(exact, possible[0] if len(possible) == 1 else item)


def _may_be_generated(
    items: Sequence[exp.Expr], select: exp.Select, scope: Scope, expressions: Expressions
) -> dict[str, Column]:
    """Returns a column for each key that may be the name Spark generates for one of several items, by its name."""
    names = [parts[0] for parts in map(name_parts, items) if len(parts) == 1 and not parts[0].isidentifier()]
    missing = [name for name in names if isinstance(scope.resolve((name,)), UnresolvedName)]
    named = [_item_name(other, scope, expressions) for other in select.expressions] if missing else ()
    found = (name for name in missing if any(column and column.may_be_called(name) for column in named))
    return {name.lower(): Column(name, may_carry=True) for name in found}


def _item_name(item: exp.Expr, scope: Scope, expressions: Expressions) -> Column | None:
    """Returns the column of an item to which a key may refer by its name: a star and an aggregate are not keys."""
    is_key = isinstance(item, exp.Alias) or not (item.is_star or expressions.text.is_aggregate(item))
    return expressions.column(item, scope) if is_key else None


# Finds names above an aggregation that are neither grouping keys nor in aggregate functions.
#
# Spark compares expressions semantically; this module compares texts and names. It reports nothing about an
# expression that may be a key in other words (`CheckAnalysis.checkValidAggregateExpression` of Spark 4.3).

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
