"""GROUP BY: its keys as columns, and the names that it adds to the scope of the select list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from sqlglot import exp

from sqlstream.compiler.flow.columns import Column
from sqlstream.compiler.flow.expressions.checks import check_expression
from sqlstream.compiler.flow.expressions.column import TIME_WINDOWS, WINDOWS, Expressions
from sqlstream.compiler.flow.expressions.places import Clause
from sqlstream.compiler.flow.names.problems import grouping_problem, variant_key_problem
from sqlstream.compiler.flow.names.scope import Ambiguous, Missing, Resolved, Scope, Visible
from sqlstream.compiler.flow.nodes import Key
from sqlstream.compiler.flow.operators.grouped import GroupingKeys, keys_of
from sqlstream.compiler.flow.text import Text, parts_of
from sqlstream.compiler.flow.types.families import contains
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import counted

SETS = {exp.Rollup: "rollup", exp.Cube: "cube", exp.GroupingSets: "grouping sets"}
"""sqlglot's classes for grouping sets, and their names."""

UNKNOWN = frozenset({"unknown-column", "unknown-field", "unknown-function", "ambiguous-column"})
"""Problems of a key that leave open what the query groups by."""


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY, and the expressions that they stand for; what kind of grouping sets it has, whether by
    session, the names of the time windows that it makes, and the scope with these. `is_faulty` says that a key names
    something unknown: what else is wrong with the grouping may follow from that.
    """

    keys: tuple[Key, ...]
    items: tuple[exp.Expr, ...]
    sets: str
    session: bool
    windows: frozenset[str]
    scope: Scope
    is_faulty: bool = False


def grouping_of(select: exp.Select, scope: Scope, expressions: Expressions) -> Grouping | None:
    """Returns the grouping of `select`, None where it has no GROUP BY."""
    clause = select.args.get("group")
    if clause is None:
        return None
    # a key that stands in several grouping sets is one key
    found = _keys_of(clause, select, scope, expressions)
    keyed = list({expressions.text.written(item): (item, meant) for item, meant in found}.values())
    written = [item for item, _ in keyed]
    items = tuple(meant.unalias() for _, meant in keyed)
    called = {expressions.text.function(item) for item in items}
    windows = [expressions.column(item, scope) for item in items if expressions.text.function(item) in WINDOWS]
    names = {name.lower() for item in scope.relations for name in [column.name for column in item.columns or ()]}
    added = tuple(column for column in windows if column.name.lower() not in names)
    inner = scope.with_relations(Visible(None, added)) if added else scope
    always = _in_every_set(clause, expressions)
    before = len(expressions.problems)
    for item, meant in () if clause.args.get("all") else zip(written, items, strict=True):
        check_expression(expressions, meant, inner, _place(item, meant))
    wrong = UNKNOWN & {problem.code for problem in expressions.problems[before:]}
    if "unknown-function" in wrong:
        inner = inner.with_relations(_possible_windows(inner))
    keys = tuple(_key(item, meant, inner, expressions, always) for item, meant in zip(written, items, strict=True))
    if wrong:
        keys = tuple(replace(key, column=replace(key.column, may_carry=True), is_column=True) for key in keys)
    sets = next((name for kind, name in SETS.items() if clause.find(kind)), "")
    own = frozenset(column.name.lower() for column in added)
    return Grouping(keys, items, sets, "session_window" in called, own, inner, bool(wrong))


def _possible_windows(scope: Scope) -> Visible:
    """The columns that an unknown function in GROUP BY may stand for: a mistyped `window` makes one of that name."""
    names = sorted(name for name in WINDOWS if isinstance(scope.resolve((name,)), Missing))
    return Visible(None, tuple(Column(name, None) for name in names))


def ungrouped(
    select: exp.Select,
    grouping: Grouping | None,
    scope: Scope,
    output: tuple[Column, ...] | None,
    expressions: Expressions,
) -> Iterator[SqlProblem]:
    """Gives a problem for each column above an aggregation that it neither groups by nor aggregates.

    `scope` is that of FROM, `output` what the select list gives: HAVING and ORDER BY may use its names.
    """
    if grouping is not None and (grouping.sets or grouping.is_faulty):
        return
    clause = select.args.get("group")
    groups_by_all = clause is not None and clause.args.get("all")
    items = [] if grouping is None else list(grouping.items)
    keys = keys_of(items, frozenset() if grouping is None else grouping.windows, scope, expressions)
    texts = [expressions.text.written(item) for item in items]
    for item in select.expressions:
        inner = item.this if isinstance(item, exp.Alias | exp.Aliases) else item
        written = [".".join(parts_of(node)) or expressions.text.written(node) for node in keys.ungrouped(inner)]
        stars = () if groups_by_all else _ungrouped_of_star(inner, keys)
        for name in [*written, *stars][:1]:
            yield grouping_problem(name, texts, expressions.text.where(item).offset)
    if output is None:
        return
    given = frozenset(column.name.lower() for column in output)
    for above in (select.args.get("having"), select.args.get("order")):
        for node in () if above is None else keys.ungrouped(above, given):
            name = ".".join(parts_of(node)) or expressions.text.written(node)
            yield grouping_problem(name, texts, expressions.text.where(node).offset)


def _ungrouped_of_star(item: exp.Expr, keys: GroupingKeys) -> Iterator[str]:
    """Gives each column of `*` or `t.*` that is no key."""
    for relation, column in _starred(item, keys.scope):
        if keys.named(column, relation.name or "") not in keys.names:
            yield column.name


def _starred(item: exp.Expr, scope: Scope) -> Iterator[tuple[Visible, Column]]:
    """Gives each column that `*` or `t.*` stands for behind its relation; none for another item."""
    star = _star_of(item)
    names = [part.name.lower() for part in item.parts[:-1]] if isinstance(item, exp.Column) else []
    if star is None or len(names) > 1:
        return
    left_out = {part.name.lower() for part in star.args.get("except_") or ()}
    qualifier = next(iter(names), None)
    for relation in scope.relations:
        if qualifier in (None, relation.key):
            for column in relation.columns or ():
                if column.name.lower() not in left_out | relation.merged:
                    yield relation, column


def position_problems(select: exp.Select, output: tuple[Column, ...] | None, text: Text) -> Iterator[SqlProblem]:
    """Gives a problem for each number in GROUP BY or ORDER BY that is no position in the select list."""
    group, order = select.args.get("group"), select.args.get("order")
    stars = any(item.is_star for item in select.expressions)
    keys = [] if group is None else group.expressions
    counted_off = [item for item in keys if _position(item) is not None]
    if stars and counted_off:
        what = "GROUP BY uses a position, but the select list contains a star"
        why = "Spark does not allow positions in GROUP BY together with a star"
        fix = "use column names"
        yield SqlProblem(text.where(counted_off[0]).offset, "bad-position", what, why, fix)
    elif not stars:
        yield from _out_of_range(keys, len(select.expressions), "GROUP BY", text)
    if order is not None and output is not None:
        yield from _out_of_range([item.this for item in order.expressions], len(output), "ORDER BY", text)


def _out_of_range(items: list[exp.Expr], columns: int, clause: str, text: Text) -> Iterator[SqlProblem]:
    for item in items:
        place = _position(item)
        if place is not None and not 1 <= place <= columns:
            what = f"{clause} {place} is not a position in the select list"
            why = f"a number in {clause} is a position in the select list, which has {counted(columns, 'column')}"
            fix = "use the column name"
            yield SqlProblem(text.where(item).offset, "bad-position", what, why, fix)


def _position(item: exp.Expr) -> int | None:
    """The number that an item of GROUP BY or ORDER BY is."""
    sign, inner = (-1, item.this) if isinstance(item, exp.Neg) else (1, item)
    is_number = isinstance(inner, exp.Literal) and not inner.is_string and inner.name.isdecimal()
    return sign * int(inner.name) if is_number else None


def _keys_of(
    clause: exp.Expr, select: exp.Select, scope: Scope, expressions: Expressions
) -> Iterator[tuple[exp.Expr, exp.Expr]]:
    """The keys as written, each with what it stands for. GROUP BY ALL groups by each item that has no aggregate."""
    for item in select.expressions if clause.args.get("all") else ():
        if _star_of(item) is not None:
            start = expressions.text.where(item).offset
            yield from ((column, column) for column in _columns_of_star(item, start, scope))
        elif not expressions.text.is_aggregate(item):
            yield item.unalias(), item
    for item in clause.expressions:
        yield from ((part, _meant(part, select, scope)) for part in _parts(item))


def _star_of(item: exp.Expr) -> exp.Star | None:
    """The star that an item of a select list is: `*` or `t.*`."""
    star = item.this if isinstance(item, exp.Column) else item
    return star if isinstance(star, exp.Star) else None


def _columns_of_star(item: exp.Expr, start: int, scope: Scope) -> Iterator[exp.Expr]:
    """Gives the name of each column that `*` or `t.*` stands for, at the place of the star."""
    for relation, column in _starred(item, scope):
        qualifier = None if relation.name is None else exp.Identifier(this=relation.name, quoted=False)
        name = exp.Column(this=exp.Identifier(this=column.name, quoted=False), table=qualifier)
        name.meta["start"] = start
        yield name


def _in_every_set(clause: exp.Expr, expressions: Expressions) -> frozenset[str] | None:
    """The texts of the keys that no grouping set leaves out, None where there are no grouping sets."""
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
    """The keys within grouping sets, or the key itself."""
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
    found = scope.resolve(parts_of(meant))
    is_column = isinstance(found, Missing | Ambiguous) or (isinstance(found, Resolved) and not found.fields)
    window = expressions.text.function(meant) in TIME_WINDOWS
    in_every_set = always is None or expressions.text.written(item) in always
    where = expressions.text.where(item)
    return Key(expressions.text.written(meant), column, is_column or window, where, in_every_set)


def _place(item: exp.Expr, meant: exp.Expr) -> Clause:
    """Where a key is read: a generator may be grouped by as a position of the select list, and not else."""
    return Clause.POSITION if item is not meant and not parts_of(item) else Clause.GROUP_BY


def _meant(item: exp.Expr, select: exp.Select, scope: Scope) -> exp.Expr:
    """What a key stands for: an ordinal and an alias mean an item of the select list."""
    if isinstance(item, exp.Literal) and not item.is_string and str(item.this).isdigit():
        at = int(item.this) - 1
        return select.expressions[at] if 0 <= at < len(select.expressions) else item
    parts = parts_of(item)
    if len(parts) == 1 and isinstance(scope.resolve(parts), Missing):
        for chosen in select.expressions:
            if isinstance(chosen, exp.Alias) and chosen.alias.lower() == parts[0].lower():
                return chosen
    return item
