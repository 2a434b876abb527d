"""Where Spark accepts aggregate functions, generators, functions with OVER, and expressions that must be constant."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from sqlglot import exp

from sqlstream.compiler.flow.functions import AGGREGATES, FUNCTIONS, GENERATORS, WINDOW_FUNCTIONS
from sqlstream.compiler.flow.names import ANYWHERE
from sqlstream.compiler.flow.text import Text, is_windowed
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.numbers import plural
from sqlstream.project.wording import quoted

CODE = "misplaced-function"


class Clause(StrEnum):
    """The clause that contains an expression, as messages name it."""

    SELECT = "the select list"
    WHERE = "WHERE"
    ON = "the condition of a join"
    GROUP_BY = "GROUP BY"
    POSITION = "GROUP BY by position"
    HAVING = "HAVING"
    ORDER_BY = "ORDER BY"
    LATERAL_VIEW = "LATERAL VIEW"


_WITH_AGGREGATES = frozenset({Clause.SELECT, Clause.HAVING, Clause.ORDER_BY})
_WITH_OVER = frozenset({Clause.SELECT, Clause.ORDER_BY, Clause.GROUP_BY, Clause.POSITION})
"""The clauses that can accept functions with OVER. In GROUP BY, it depends on the select list."""


def misplaced_functions(node: exp.Expr, clause: Clause, text: Text, *, correlated: bool) -> Iterator[SqlProblem]:
    """Yields a problem for each function in `node` that Spark does not accept in `clause`.

    `correlated` means that `node` is in a subquery, whose aggregate functions can belong to the outer query.
    """
    walked = text.parts_of(node)
    for name, part in walked.functions:
        if name in GENERATORS:
            yield from _generator(part, node, clause, text)
        elif name in AGGREGATES and not is_windowed(part):
            yield from _nested(part, text) if clause in _WITH_AGGREGATES else _aggregate(part, clause, text, correlated)
        elif name in WINDOW_FUNCTIONS and not is_windowed(part):
            what = f"{quoted(name)} needs OVER"
            why = "it ranks a row among others, so it needs to know which rows"
            fix = f"use {name}(...) over (partition by ... order by ...), which works only on static tables"
            yield text.problem(part, CODE, what, why, fix)
    windows = [part for part in walked.parts if isinstance(part, exp.Window)] if exp.Window in walked.kinds else []
    for part in windows if clause not in _WITH_OVER else ():
        what = f"a function with OVER is used in {clause}"
        why = "window functions run after WHERE, GROUP BY and HAVING"
        fix = "compute it in a subquery or an upstream model, and use its column here"
        yield text.problem(part, CODE, what, why, fix)


def _aggregate(part: exp.Expr, clause: Clause, text: Text, correlated: bool) -> Iterator[SqlProblem]:
    if not correlated:
        what = f"the aggregate function {quoted(text.function(part))} is used in {clause}"
        why = f"{clause} applies to single rows, before they are aggregated"
        fix = "compute it in a subquery or an upstream model, and use its column"
        fix = "move the condition to HAVING, after GROUP BY" if clause is Clause.WHERE else fix
        yield text.problem(part, CODE, what, why, fix)


def _nested(part: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    name, outer = text.function(part), _around(part, text)
    if outer is not None:
        what = f"the aggregate function {quoted(name)} is used inside {quoted(text.function(outer))}"
        why = "Spark cannot nest aggregate functions in one query"
        fix = f"compute {quoted(name)} in a subquery or an upstream model, and aggregate its column"
        yield text.problem(part, CODE, what, why, fix)


def _around(part: exp.Expr, text: Text) -> exp.Expr | None:
    """Returns the aggregate function without OVER whose argument contains `part`."""
    inner, found = part, part.parent
    while found is not None and not isinstance(found, exp.Query | exp.Window):
        if isinstance(found, exp.Filter) and inner is not found.this:  # in the condition of FILTER
            filtered = found.this.this if isinstance(found.this, exp.WithinGroup) else found.this
            return None if is_windowed(filtered) else filtered
        if text.function(found) in AGGREGATES:
            # `sum(count(*)) over ()` is allowed: OVER runs after the aggregation
            return None if is_windowed(found) else found
        inner, found = found, found.parent
    return None


def _generator(part: exp.Expr, node: exp.Expr, clause: Clause, text: Text) -> Iterator[SqlProblem]:
    in_list, in_view = clause in (Clause.SELECT, Clause.POSITION), clause is Clause.LATERAL_VIEW
    if (in_list and unwrapped(node) is part) or (in_view and part is node):
        return
    name = text.function(part)
    what = f"{quoted(name)} is used inside {'an expression' if in_list or in_view else clause}"
    why = "it returns several rows, so it must be one whole item of a select list, or be in LATERAL VIEW"
    fix = f"use from ... lateral view {name}(...) t as value, and value here"
    yield text.problem(part, CODE, what, why, fix)


def unwrapped(item: exp.Expr) -> exp.Expr:
    """Returns an item of a select list without its aliases and outer parentheses."""
    while isinstance(item, exp.Alias | exp.Aliases | exp.Paren):
        item = item.this
    return item


def alias_problems(node: exp.Expr, columns: int | None, text: Text) -> Iterator[SqlProblem]:
    """Yields the problem of `x as (a, b)` if x is no generator or its number of `columns` (None: unknown) differs.

    For a generator, `as a` is such a list too.
    """
    inner, is_list = unwrapped(node), isinstance(node, exp.Aliases)
    name = text.function(inner)
    names = len(node.expressions) if is_list else 1
    # sqlglot reads the arguments after `identifier(...)`, which may name any function, as names
    if (
        is_list
        and name not in {*GENERATORS, "identifier"}
        and (name in FUNCTIONS or not isinstance(inner, exp.Anonymous))
    ):
        what = f"{quoted(text.written(inner))} has a list of names"
        why = "it returns one column; only generators such as explode return several"
        fix = "use one name without parentheses, or select several columns"
        yield text.problem(node, CODE, what, why, fix)
    elif name in GENERATORS and columns is not None and columns != names:
        what = f"{quoted(name)} returns {plural(columns, 'column')} but has {plural(names, 'name')}"
        why = "if a generator has names for its columns, each column needs one"
        fix = f"write as ({', '.join(f'name{number}' for number in range(1, columns + 1))})"
        yield text.problem(node, CODE, what, why, fix)


def lateral_view_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields the problem of a LATERAL VIEW with a function that is no generator."""
    name = text.function(node)
    if name in FUNCTIONS and name not in GENERATORS:
        what = f"{quoted(name)} in LATERAL VIEW is not a generator"
        why = "LATERAL VIEW needs a generator such as explode or inline"
        yield text.problem(node, CODE, what, why, f"move {quoted(name)} to the select list")


def range_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields the problem of the table function `range` with columns: NON_FOLDABLE_ARGUMENT."""
    for _, name in text.parts_of(node).names[:1] if text.function(node) == "range" else ():
        what = f"`range` in FROM depends on {quoted(text.written(name))}"
        why = "the table function range accepts only constants"
        fix = f"use lateral view explode(sequence(0, {text.written(name)} - 1)) t as id"
        yield text.problem(node, CODE, what, why, fix)


def constant_problems(node: exp.Expr, text: Text) -> Iterator[SqlProblem]:
    """Yields a problem for each name in VALUES or in the arguments of `range`, which cannot read columns."""
    inner = node.this if isinstance(node, exp.Subquery | exp.Table) else node
    is_range = isinstance(inner, exp.Anonymous) and inner.name.lower() == "range"
    names = text.parts_of(inner).names if is_range or isinstance(inner, exp.Values) else ()
    for parts, part in names:
        if parts[0].lower() not in ANYWHERE:
            what = f"{'`range`' if is_range else 'VALUES'} cannot read the column {quoted('.'.join(parts))}"
            why = "Spark evaluates it while it analyzes the query, before it reads any rows"
            fix = "use explode(sequence(1, n)) for numbers, and inline(array(struct(...), ...)) for rows"
            yield text.problem(part, "not-constant", what, why, fix)
