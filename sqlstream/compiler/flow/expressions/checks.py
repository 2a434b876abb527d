"""All checks of one expression: its names, the places of its functions, and its types."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from sqlglot import exp

from sqlstream.compiler.flow.expressions.arguments import argument_problems, type_problems
from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS, Mismatches
from sqlstream.compiler.flow.expressions.places import Clause, misplaced_functions
from sqlstream.compiler.flow.names import Scope
from sqlstream.compiler.flow.types import BIGINT, DATETIME, DIGITS, DOUBLE, NUMBER, family, kind
from sqlstream.compiler.sql.edits import SqlProblem
from sqlstream.project.formats.option_types import may_be_zone
from sqlstream.project.types.types import DataType
from sqlstream.project.wording import quoted

CONDITIONS = {Clause.WHERE: "the condition of WHERE", Clause.ON: "the condition of the join"}
"""The clauses whose expression must be a boolean, with their names in messages. Spark casts HAVING to boolean."""


def check_expression(expressions: Expressions, node: exp.Expr, scope: Scope, place: Clause) -> None:
    """Adds the problems of `node`, whose names resolve in `scope`, to those of `expressions`."""
    expressions.check(node, scope)
    if isinstance(node, exp.Column) and place not in CONDITIONS:
        return  # most items of a select list are names
    mismatches = Mismatches(expressions, scope)
    found = [*argument_problems(node, expressions.text), *mismatches.problems(node)]
    found += [*type_problems(node, scope, expressions), *failing_casts(node, scope, expressions)]
    if place in CONDITIONS:
        found += mismatches.condition(node, CONDITIONS[place])
    expressions.problems.extend(found)
    correlated = scope.outer is not None
    expressions.problems.extend(misplaced_functions(node, place, expressions.text, correlated=correlated))


# Text literals that Spark casts but cannot: with ANSI mode on, the query fails at its first row.
#
# The rules are those of `UTF8String.toLong`, `Cast`, `SparkDateTimeUtils` and `StringUtils` of Spark 4.3;
# `tests/spark/test_text_casts.py` compares them with the installed Spark.

_COMPARING = (*COMPARISONS, exp.Between, exp.In)
_ALWAYS_EVALUATED = (*_COMPARING, exp.And, exp.Not, exp.Paren, exp.Alias, exp.Is)
_CLAUSES = (exp.Select, exp.Where, exp.Having, exp.Join)

_BLANKS = " \t\n\r\f\v\0"
_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(
    r"""[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?[df]?|inf(?:inity)?|0x[0-9a-f.]+p[+-]?[0-9]+[df]?)|nan""",
    re.IGNORECASE,
)
_BOOLEANS = frozenset({"t", "true", "y", "yes", "1", "f", "false", "n", "no", "0"})
_SPECIAL_TIME = re.compile(r"(?:epoch|now|today|tomorrow|yesterday)(?:\s+(?P<zone>.*))?", re.IGNORECASE)
_DAY = re.compile(r"[+-]?([0-9]{4,7})(?:-([0-9]{1,2})(?:-([0-9]{1,2})(?:[^0-9].*)?)?)?", re.DOTALL)
_TIME_OF_DAY = re.compile(r"T?[0-9]{1,2}:.*", re.IGNORECASE)
_YEARS = range(1, 10_000)
"""The years in Python's calendar."""


def failing_casts(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Yields a problem for each text in `node` that Spark casts in every row and cannot cast."""
    text = expressions.text
    parts = (part for part in text.parts_of(node).parts if isinstance(part, (*_COMPARING, exp.Cast)))
    for part in (part for part in parts if _is_evaluated(part)):
        for literal, type_ in list(_failing(part, scope, expressions))[:1]:
            what = f"the text {quoted(text.written(literal))} cannot be cast to {type_}"
            why = "Spark casts it at run time, and the query fails with CAST_INVALID_INPUT"
            fix = f"use a value of type {type_}; try_cast returns null instead of failing"
            yield text.problem(literal, "type-mismatch", what, why, fix)


def _is_evaluated(node: exp.Expr) -> bool:
    """Returns whether Spark evaluates `node` in every row: no OR, CASE or function around it decides that."""
    around = node.parent
    while isinstance(around, _ALWAYS_EVALUATED):
        around = around.parent
    return isinstance(around, _CLAUSES)


def _failing(part: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[tuple[exp.Expr, DataType]]:
    """Yields each text that cannot be cast, and the type; for IN, only if that is true of all its values."""
    if isinstance(part, exp.Cast):
        yield from () if part.args.get("safe") else _casts([part.this], expressions.type_of(part, scope))
        return
    for value, others in _sides(part):
        found = list(_casts(others, _compared_as(expressions.type_of(value, scope))))
        if not isinstance(part, exp.In) or len(found) == len(others):
            yield from found


def _sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Expr]]]:
    """Yields each compared value and the values on the other side."""
    if isinstance(part, exp.In):
        yield part.this, part.expressions
    elif isinstance(part, exp.Between):
        yield part.this, [part.args["low"], part.args["high"]]
    else:
        yield part.this, [part.args["expression"]]
        yield part.args["expression"], [part.this]


def _casts(values: list[exp.Expr], type_: DataType | None) -> Iterator[tuple[exp.Expr, DataType]]:
    for value in values:
        literal = value.unnest()
        is_text = isinstance(literal, exp.Literal) and literal.is_string and "start" in literal.meta
        if type_ is not None and is_text and cannot_be_cast(literal.name, type_):
            yield literal, type_


def _compared_as(type_: DataType | None) -> DataType | None:
    """Returns the type to which text is cast beside a value of `type_`."""
    if family(type_) == NUMBER:
        return BIGINT if kind(type_) in DIGITS else DOUBLE
    return type_


def cannot_be_cast(text: str, target: DataType | None) -> bool:
    """Returns whether Spark certainly cannot cast `text` to `target`; False for unknown types."""
    text = text.strip(_BLANKS)
    group = family(target)
    if group == NUMBER and text.isascii():  # Java's decimals accept the digits of other scripts
        return (_WHOLE if kind(target) in DIGITS else _FRACTION).fullmatch(text) is None
    if group == DATETIME:
        return _is_no_time(text, takes_time_of_day=kind(target) == "timestamp")
    return group == "boolean" and text.lower() not in _BOOLEANS


def _is_no_time(text: str, *, takes_time_of_day: bool) -> bool:
    special = _SPECIAL_TIME.fullmatch(text)
    if special is not None:
        return special["zone"] is not None and not may_be_zone(special["zone"])
    if takes_time_of_day and _TIME_OF_DAY.fullmatch(text):
        return False
    found = _DAY.fullmatch(text)
    if found is None:
        return True
    year, month, day = (int(part or 1) for part in found.groups())
    if year not in _YEARS:
        return False
    try:
        date(year, month, day)
    except ValueError:
        return True
    return False
