"""Which functions may stand where: aggregate functions, generators and functions with OVER have places of their own."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from sqlglot import exp

from sqlstream.compiler.flow.functions.known import AGGREGATES, FUNCTIONS, GENERATORS, WINDOW_FUNCTIONS
from sqlstream.compiler.flow.text import Text, is_windowed
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import counted, quoted


class Clause(StrEnum):
    """The clause that an expression stands in, as it is called in a message."""

    SELECT = "the select list"
    WHERE = "WHERE"
    ON = "the condition of a join"
    GROUP_BY = "GROUP BY"
    POSITION = "GROUP BY by position"
    HAVING = "HAVING"
    ORDER_BY = "ORDER BY"
    LATERAL_VIEW = "LATERAL VIEW"


TAKES_AGGREGATES = frozenset({Clause.SELECT, Clause.HAVING, Clause.ORDER_BY})
TAKES_OVER = frozenset({Clause.SELECT, Clause.ORDER_BY, Clause.GROUP_BY, Clause.POSITION})
"""Where functions with OVER may stand; what Spark says of them in GROUP BY depends on the select list."""


def misplaced_functions(node: exp.Expr, place: Clause, text: Text, *, correlated: bool) -> Iterator[SqlProblem]:
    """Gives a problem for each function in `node` that Spark does not take in `place`.

    `correlated` says that `node` is of a subquery, whose aggregate functions may be those of the query around it.
    """
    walked = text.parts_of(node)
    for name, part in walked.functions:
        if name in GENERATORS:
            yield from _generator(part, node, place, text)
        elif name in AGGREGATES and not is_windowed(part):
            yield from _aggregate(part, place, text, correlated=correlated)
        elif name in WINDOW_FUNCTIONS and not is_windowed(part):
            what = f"{quoted(name)} needs OVER"
            why = "it ranks a row among others, so it needs to know which rows"
            fix = f"use {name}(...) over (partition by ... order by ...), which works only on static tables"
            yield _problem(part, text, what, why, fix)
    for part in walked.parts if exp.Window in walked.kinds and place not in TAKES_OVER else ():
        if isinstance(part, exp.Window):
            what = f"a function with OVER is used in {place}"
            why = "window functions run after WHERE, GROUP BY and HAVING"
            fix = "compute it in a subquery or an upstream model, and use its column here"
            yield _problem(part, text, what, why, fix)


def _aggregate(part: exp.Expr, place: Clause, text: Text, *, correlated: bool) -> Iterator[SqlProblem]:
    name = text.function(part)
    if place not in TAKES_AGGREGATES:
        if not correlated:
            fix = "move the condition to HAVING, after GROUP BY"
            if place is not Clause.WHERE:
                fix = "compute it in a subquery or an upstream model, and use its column"
            what = f"the aggregate function {quoted(name)} is used in {place}"
            why = f"{place} applies to single rows, before they are aggregated"
            yield _problem(part, text, what, why, fix)
        return
    outer = _around(part, text)
    if outer is not None:
        what = f"the aggregate function {quoted(name)} is used inside {quoted(text.function(outer))}"
        why = "Spark cannot nest aggregate functions in one query"
        fix = f"compute {quoted(name)} in a subquery or an upstream model, and aggregate its column"
        yield _problem(part, text, what, why, fix)


def _around(part: exp.Expr, text: Text) -> exp.Expr | None:
    """The aggregate function without OVER that `part` is an argument of."""
    within, found = part, part.parent
    while found is not None and not isinstance(found, exp.Query | exp.Window):
        if isinstance(found, exp.Filter) and within is not found.this:
            filtered = found.this.this if isinstance(found.this, exp.WithinGroup) else found.this
            return None if is_windowed(filtered) else filtered
        if text.function(found) in AGGREGATES:
            return None if is_windowed(found) else found
        within, found = found, found.parent
    return None


def _generator(part: exp.Expr, node: exp.Expr, place: Clause, text: Text) -> Iterator[SqlProblem]:
    if place in (Clause.SELECT, Clause.POSITION) and _is_whole_item(part, node):
        return
    if place is Clause.LATERAL_VIEW and part is node:
        return
    name = text.function(part)
    within = "an expression" if place in (Clause.SELECT, Clause.POSITION, Clause.LATERAL_VIEW) else str(place)
    what = f"{quoted(name)} is used inside {within}"
    why = "it returns several rows, so it must be a column of its own in a select list, or be in LATERAL VIEW"
    fix = f"use from ... lateral view {name}(...) t as value, and value here"
    yield _problem(part, text, what, why, fix)


def _is_whole_item(part: exp.Expr, node: exp.Expr) -> bool:
    inner = node
    while isinstance(inner, exp.Alias | exp.Aliases | exp.Paren):
        inner = inner.this
    return inner is part


def alias_problems(node: exp.Expr, columns: int | None, text: Text) -> Iterator[SqlProblem]:
    """Gives the problem of `x as (a, b)`, where x is no generator or gives another number of columns (None: unknown).

    `as a` of a generator is such a list too.
    """
    inner = node.this if isinstance(node, exp.Alias | exp.Aliases) else node
    while isinstance(inner, exp.Paren):
        inner = inner.this
    name = text.function(inner)
    names = len(node.expressions) if isinstance(node, exp.Aliases) else 1
    if (
        isinstance(node, exp.Aliases)
        and name not in GENERATORS
        and (name in FUNCTIONS or not isinstance(inner, exp.Anonymous))
    ):
        what = f"{quoted(text.written(inner))} has a list of names"
        why = "it returns one column; only generators such as explode return several"
        fix = "use one name without parentheses, or select several columns"
        yield _problem(node, text, what, why, fix)
    elif name in GENERATORS and columns is not None and columns != names:
        what = f"{quoted(name)} returns {counted(columns, 'column')} but has {counted(names, 'name')}"
        why = "if a generator has names for its columns, each column needs one"
        fix = f"write as ({', '.join(f'name{place + 1}' for place in range(columns))})"
        yield _problem(node, text, what, why, fix)


def lateral_view_problem(node: exp.Expr, text: Text) -> SqlProblem | None:
    """Returns the problem of a LATERAL VIEW of a function that is no generator."""
    name = text.function(node)
    if name not in FUNCTIONS or name in GENERATORS:
        return None
    what = f"{quoted(name)} in LATERAL VIEW is not a generator"
    why = "LATERAL VIEW needs a generator such as explode or inline"
    fix = f"move {quoted(name)} to the select list"
    return _problem(node, text, what, why, fix)


def range_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Gives the problem of a table function `range` over columns: NON_FOLDABLE_ARGUMENT."""
    names = text.parts_of(node).names if text.function(node) == "range" else ()
    if names:
        _, name = names[0]
        what = f"`range` in FROM depends on {quoted(text.written(name))}"
        why = "the table function range accepts only constants"
        fix = f"use lateral view explode(sequence(0, {text.written(name)} - 1)) t as id"
        yield _problem(node, text, what, why, fix)


def _problem(part: exp.Expr, text: Text, message: str, why: str, fix: str) -> SqlProblem:
    return SqlProblem(text.where(part).offset, "misplaced-function", message, why, fix)
