"""GROUP BY: its keys as columns, and the names that it adds to the scope of the select list."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from sqlglot import exp

from sqlstream.compiler.flow.expressions import TIME_WINDOWS, Expressions, function_name, is_aggregate, parts_of
from sqlstream.compiler.flow.nodes import Key
from sqlstream.compiler.flow.problems import grouping_problem
from sqlstream.compiler.flow.scope import Missing, Resolved, Scope, Visible
from sqlstream.compiler.flow.session_gaps import gap_problem
from sqlstream.compiler.problem import SqlProblem

SETS = {exp.Rollup: "rollup", exp.Cube: "cube", exp.GroupingSets: "grouping sets"}
"""sqlglot's classes for grouping sets, and their names."""


_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Grouping:
    """The keys of a GROUP BY, what kind of grouping sets it has, whether by session, and the scope with its windows."""

    keys: tuple[Key, ...]
    sets: str
    session: bool
    scope: Scope


def grouping_of(select: exp.Select, scope: Scope, expressions: Expressions) -> Grouping | None:
    """Returns the grouping of `select`, None where it has no GROUP BY."""
    clause = select.args.get("group")
    if clause is None:
        return None
    written = [*_keys_of(clause, select, expressions)]
    always = _in_every_set(clause, expressions)
    keys = tuple(
        _key(item, select, scope, expressions, in_every_set=always is None or expressions.text.written(item) in always)
        for item in written
    )
    windows = [key.column for key in keys if key.column.window]
    names = {name.lower() for item in scope.relations for name in [column.name for column in item.columns or ()]}
    added = tuple(column for column in windows if column.name.lower() not in names)
    sessions = [item for item in written if function_name(item, expressions.text) == "session_window"]
    gaps = (gap_problem(item, expressions.text.where(item).offset) for item in sessions)
    expressions.problems.extend(problem for problem in gaps if problem is not None)
    sets = next((name for kind, name in SETS.items() if clause.find(kind)), "")
    return Grouping(keys, sets, bool(sessions), scope.with_relations(Visible(None, added)) if added else scope)


def ungrouped(
    select: exp.Select, grouping: Grouping | None, scope: Scope, expressions: Expressions
) -> list[SqlProblem]:
    """Returns a problem for each plain column of the select list that an aggregation neither groups by nor aggregates.

    Expressions are left to Spark, and so is a column that any key is made from.
    """
    if grouping is not None and grouping.sets:
        return []
    keys = grouping.keys if grouping is not None else ()
    texts = [key.text for key in keys]
    grouped = {word for text in texts for word in _WORDS.findall(text.lower())}
    grouped |= {key.column.name.lower() for key in keys}
    problems: list[SqlProblem] = []
    for item in select.expressions:
        parts = parts_of(item.unalias())
        found = Scope(scope.relations).resolve(parts) if parts else None
        if isinstance(found, Resolved) and found.column.name.lower() not in grouped:
            problems.append(grouping_problem(".".join(parts), texts, expressions.text.where(item).offset))
    return problems


def _keys_of(clause: exp.Expr, select: exp.Select, expressions: Expressions) -> Iterator[exp.Expr]:
    if clause.args.get("all"):
        yield from (item.unalias() for item in select.expressions if not is_aggregate(item, expressions.text))
    for item in clause.expressions:
        yield from _parts(item)


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


def _key(item: exp.Expr, select: exp.Select, scope: Scope, expressions: Expressions, *, in_every_set: bool) -> Key:
    meant = _meant(item, select, scope).unalias()
    expressions.check(meant, scope)
    column = expressions.column(meant, scope)
    found = scope.resolve(parts_of(meant)) if parts_of(meant) else None
    is_column = isinstance(found, Resolved) and not found.fields
    window = function_name(meant, expressions.text) in TIME_WINDOWS
    where = expressions.text.where(item)
    return Key(expressions.text.written(meant), column, is_column or window, where, in_every_set)


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
