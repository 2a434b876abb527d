"""The types of aggregate functions that no signature can describe."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.families import DATETIME, NUMBER, family
from sqlstream.compiler.flow.types.literals import Handlers, TypeResolver
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    DIGITS,
    DOUBLE,
    MOST_DIGITS,
    SPANS,
    STRING,
    WIDEST_INTERVALS,
    array_of,
    is_plain,
    kind,
    struct_of,
)
from sqlstream.project.types.types import Array, DataType, Decimal

_SUM_DIGITS = 10
"""The digits that the sum of decimals adds (`Sum.resultType`)."""

_AVERAGE_DIGITS = 4
"""The digits that the average of decimals adds before and after the point (`Average.resultType`)."""

_FRACTIONS = frozenset({"float", "double", "string", "void"})


def _sum(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    name = kind(type_)
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision + _SUM_DIGITS, MOST_DIGITS), type_.scale)
    if name in DIGITS:
        return BIGINT
    return DOUBLE if name in _FRACTIONS else type_ if name in SPANS else None


def _average(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    if isinstance(type_, Decimal):
        precision, scale = type_.precision + _AVERAGE_DIGITS, type_.scale + _AVERAGE_DIGITS
        return Decimal(min(precision, MOST_DIGITS), min(scale, MOST_DIGITS))
    return _middle(type_)


def _middle(type_: DataType | None) -> DataType | None:
    """Returns the type of a median: DOUBLE for numbers, and the widest interval of the family for intervals."""
    name = kind(type_)
    if name in SPANS:
        return WIDEST_INTERVALS[SPANS[name][0]]
    return DOUBLE if family(type_) in (NUMBER, "string", "void") else None


def _percentile(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return _per_share(typer, node.args.get("quantile"), _middle(typer.first(node)))


def _approximate_percentile(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    if kind(type_) == "string":
        type_ = DOUBLE
    elif family(type_) not in (NUMBER, DATETIME, *WIDEST_INTERVALS):
        return None
    return _per_share(typer, node.args.get("quantile"), type_)


def _per_share(typer: TypeResolver, share: object, type_: DataType | None) -> DataType | None:
    """Returns `type_` if `share` is one number, and an array of it for an array of numbers."""
    shares = typer.of(share)
    return None if shares is None else array_of(type_) if isinstance(shares, Array) else type_


def _within_group(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    order = node.args.get("expression")
    if not isinstance(order, exp.Order) or not order.expressions:
        return None
    value = order.expressions[0].this
    if isinstance(node.this, exp.Mode):
        return typer.of(value)
    if isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _per_share(typer, node.this.this, _middle(typer.of(value)))
    return typer.of(node.this) if isinstance(node.this, exp.GroupConcat) else None


def _extreme_by(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    """Returns the type of max_by: one value, or an array of values if there is a count."""
    type_ = typer.of(node.this)
    return type_ if node.args.get("count") is None else array_of(type_)


def _joined(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this.this if isinstance(node.this, exp.Order) else node.this)
    if kind(type_) == "binary":
        return BINARY
    return STRING if is_plain(type_) else None


def _top(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    return array_of(struct_of((("item", typer.first(node)), ("count", BIGINT))))


def _histogram(typer: TypeResolver, node: exp.Expr) -> DataType | None:
    type_ = typer.first(node)
    return array_of(struct_of((("x", type_), ("y", DOUBLE)))) if family(type_) in (NUMBER, DATETIME) else None


HANDLERS: Handlers = {
    exp.Sum: _sum,
    "try_sum": _sum,
    exp.Avg: _average,
    "try_avg": _average,
    "mean": _average,
    exp.Median: lambda typer, node: _middle(typer.first(node)),
    exp.Quantile: _percentile,
    exp.ApproxQuantile: _approximate_percentile,
    exp.WithinGroup: _within_group,
    exp.ArgMax: _extreme_by,
    exp.ArgMin: _extreme_by,
    exp.GroupConcat: _joined,
    exp.ApproxTopK: _top,
    "histogram_numeric": _histogram,
}
