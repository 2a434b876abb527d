"""Texts that an expression casts and Spark cannot: the query would stop with CAST_INVALID_INPUT at its first row."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlstream.compiler.flow.expressions.column import Expressions
from sqlstream.compiler.flow.expressions.mismatches import COMPARISONS
from sqlstream.compiler.flow.expressions.text_casts import cannot_be_cast
from sqlstream.compiler.flow.names.scope import Scope
from sqlstream.compiler.flow.types.families import NUMBER, family
from sqlstream.compiler.flow.types.values import BIGINT, DIGITS, DOUBLE, kind
from sqlstream.compiler.sql.problem import SqlProblem
from sqlstream.project.types.types import DataType
from sqlstream.project.wording import quoted

_LOOKED_AT = (*COMPARISONS, exp.Between, exp.In, exp.Cast)
_ALWAYS_EVALUATED = (*COMPARISONS, exp.Between, exp.In, exp.And, exp.Not, exp.Paren, exp.Alias, exp.Is)
_CLAUSES = (exp.Select, exp.Where, exp.Having, exp.Join)


def certain_failures(node: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[SqlProblem]:
    """Gives a problem for each text in `node` that Spark casts in every row and cannot cast."""
    for part in expressions.text.parts_of(node).parts:
        if isinstance(part, _LOOKED_AT) and _is_evaluated(part):
            found = next(_impossible(part, scope, expressions), None)
            if found is not None:
                yield _problem(*found, expressions)


def _is_evaluated(node: exp.Expr) -> bool:
    """Whether no OR, CASE or function around `node` decides whether it is evaluated."""
    around = node.parent
    while isinstance(around, _ALWAYS_EVALUATED):
        around = around.parent
    return isinstance(around, _CLAUSES)


def _impossible(part: exp.Expr, scope: Scope, expressions: Expressions) -> Iterator[tuple[exp.Expr, DataType]]:
    """The text and the type that it is cast to, of all texts that cannot be; of an IN, where all are such."""
    if isinstance(part, exp.Cast):
        if not part.args.get("safe"):
            yield from _casts([part.this], expressions.type_of(part, scope))
        return
    for value, others in _sides(part):
        type_ = expressions.type_of(value, scope)
        found = list(_casts(others, _compared_as(type_)))
        if found and (not isinstance(part, exp.In) or len(found) == len(others)):
            yield from found


def _sides(part: exp.Expr) -> Iterator[tuple[exp.Expr, list[exp.Expr]]]:
    """What is compared, and what with."""
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
    """What text is cast to beside a value of a type."""
    if family(type_) == NUMBER:
        return BIGINT if kind(type_) in DIGITS else DOUBLE
    return type_


def _problem(literal: exp.Expr, type_: DataType, expressions: Expressions) -> SqlProblem:
    text = expressions.text
    what = f"the text {quoted(text.written(literal))} cannot be cast to {type_}"
    why = "Spark casts it at run time, and the query fails with CAST_INVALID_INPUT"
    fix = f"use a value of type {type_}; try_cast returns null instead of failing"
    return SqlProblem(text.where(literal).offset, "type-mismatch", what, why, fix)
