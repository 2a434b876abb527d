"""Which functions may stand where: aggregate functions, generators and functions with OVER have places of their own."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from sqlglot import exp

from sqlstream.compiler.flow.functions.names import AGGREGATES, ALL, GENERATORS, WINDOW_FUNCTIONS
from sqlstream.compiler.flow.text import Text, is_windowed
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.wording import counted, quoted


class Place(StrEnum):
    """The clause that an expression stands in, as it is called in a message."""

    SELECT = "the select list"
    WHERE = "WHERE"
    ON = "the condition of a join"
    GROUP_BY = "GROUP BY"
    POSITION = "GROUP BY as a position"
    HAVING = "HAVING"
    ORDER_BY = "ORDER BY"
    LATERAL_VIEW = "LATERAL VIEW"


TAKES_AGGREGATES = frozenset({Place.SELECT, Place.HAVING, Place.ORDER_BY})
TAKES_OVER = frozenset({Place.SELECT, Place.ORDER_BY, Place.GROUP_BY, Place.POSITION})
"""Where functions with OVER may stand; what Spark says of them in GROUP BY depends on the select list."""


def misplaced_functions(node: exp.Expr, place: Place, text: Text, *, correlated: bool) -> Iterator[SqlProblem]:
    """Gives a problem for each function in `node` that Spark does not take in `place`.

    `correlated` says that `node` is of a subquery, whose aggregate functions may be those of the query around it.
    """
    look = text.look(node)
    for name, part in look.functions:
        if name in GENERATORS:
            yield from _generator(part, node, place, text)
        elif name in AGGREGATES and not is_windowed(part):
            yield from _aggregate(part, place, text, correlated=correlated)
        elif name in WINDOW_FUNCTIONS and not is_windowed(part):
            yield _problem(
                part,
                text,
                f"{quoted(name)} has no OVER",
                "it says where a row stands among others, so it needs to be told which ones",
                f"write {name}(...) over (partition by ... order by ...), which only static tables take",
            )
    for part in look.parts if exp.Window in look.kinds and place not in TAKES_OVER else ():
        if isinstance(part, exp.Window):
            yield _problem(
                part,
                text,
                f"a function with OVER stands in {place}",
                "it compares rows with each other after WHERE, GROUP BY and HAVING are done",
                "compute it in a model or subquery below, and use its column here",
            )


def _aggregate(part: exp.Expr, place: Place, text: Text, *, correlated: bool) -> Iterator[SqlProblem]:
    name = text.function(part)
    if place not in TAKES_AGGREGATES:
        if not correlated:
            fix = "write that condition in HAVING, behind GROUP BY"
            if place is not Place.WHERE:
                fix = "compute it in a model or subquery below, and use its column"
            yield _problem(
                part,
                text,
                f"the aggregate function {quoted(name)} stands in {place}",
                f"{place} is about single rows, before they are put together",
                fix,
            )
        return
    outer = _around(part, text)
    if outer is not None:
        yield _problem(
            part,
            text,
            f"the aggregate function {quoted(name)} stands within {quoted(text.function(outer))}",
            "an aggregation puts rows together once; its results cannot be put together in the same step",
            f"compute {quoted(name)} in a model or subquery below, and aggregate its column",
        )


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


def _generator(part: exp.Expr, node: exp.Expr, place: Place, text: Text) -> Iterator[SqlProblem]:
    if place in (Place.SELECT, Place.POSITION) and _is_whole_item(part, node):
        return
    if place is Place.LATERAL_VIEW and part is node:
        return
    name = text.function(part)
    within = "an expression" if place in (Place.SELECT, Place.POSITION, Place.LATERAL_VIEW) else str(place)
    yield _problem(
        part,
        text,
        f"{quoted(name)} stands within {within}",
        "it gives several rows, so it can only be a column of a select list by itself, or a LATERAL VIEW",
        f"write from ... lateral view {name}(...) t as value, and use value here",
    )


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
        and (name in ALL or not isinstance(inner, exp.Anonymous))
    ):
        yield _problem(
            node,
            text,
            f"{quoted(text.written(inner))} gets a list of names",
            "it is one column; only generators such as explode give several",
            "write one name without parentheses, or select several columns",
        )
    elif name in GENERATORS and columns is not None and columns != names:
        yield _problem(
            node,
            text,
            f"{quoted(name)} gives {counted(columns, 'column')} and gets {counted(names, 'name')}",
            "each column that a generator gives needs a name, if it has any",
            f"write as ({', '.join(f'name{place + 1}' for place in range(columns))})",
        )


def lateral_view_problem(node: exp.Expr, text: Text) -> SqlProblem | None:
    """Returns the problem of a LATERAL VIEW of a function that is no generator."""
    name = text.function(node)
    if name not in ALL or name in GENERATORS:
        return None
    return _problem(
        node,
        text,
        f"{quoted(name)} stands in LATERAL VIEW and is no generator",
        "LATERAL VIEW adds the rows that a generator such as explode or inline gives",
        f"put {quoted(name)} into the select list",
    )


def range_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Gives the problem of a table function `range` over columns: NON_FOLDABLE_ARGUMENT."""
    names = text.look(node).names if text.function(node) == "range" else ()
    if names:
        _, name = names[0]
        yield _problem(
            node,
            text,
            f"`range` over {quoted(text.written(name))} stands in FROM",
            "the table function range takes constants only",
            f"write lateral view explode(sequence(0, {text.written(name)} - 1)) t as id",
        )


def _problem(part: exp.Expr, text: Text, message: str, why: str, fix: str) -> SqlProblem:
    return SqlProblem(text.where(part).offset, "misplaced-function", message, why, fix)
