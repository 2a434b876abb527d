"""The types of aggregate functions that no signature can describe."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BINARY,
    DATETIMES,
    DIGITS,
    DOUBLE,
    MOST_DIGITS,
    RANKS,
    SPANS,
    STRING,
    WIDEST_INTERVALS,
    is_plain,
    kind,
)
from sqlstream.project.types.types import Array, DataType, Decimal, Field, Struct

_SUM_DIGITS = 10
"""The digits by which a sum of decimals grows (`Sum.resultType`)."""

_AVERAGE_DIGITS = 4
"""The digits before and behind the point by which an average of decimals grows (`Average.resultType`)."""

_FRACTIONS = frozenset({"float", "double", "string", "void"})


def _this(typer: Typer, node: exp.Expr) -> DataType | None:
    return typer.of(_argument(node))


def _argument(node: exp.Expr) -> object:
    """The first argument of a function, whether sqlglot knows the function or not."""
    first = node.this if not isinstance(node, exp.Anonymous) else argument(node)
    return argument(first) if isinstance(first, exp.Distinct) else first


def _sum(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(_argument(node))
    name = kind(type_)
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision + _SUM_DIGITS, MOST_DIGITS), type_.scale)
    if name in DIGITS:
        return BIGINT
    return DOUBLE if name in _FRACTIONS else type_ if name in SPANS else None


def _average(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(_argument(node))
    if isinstance(type_, Decimal):
        precision, scale = type_.precision + _AVERAGE_DIGITS, type_.scale + _AVERAGE_DIGITS
        return Decimal(min(precision, MOST_DIGITS), min(scale, MOST_DIGITS))
    return _middle(type_)


def _middle(type_: DataType | None) -> DataType | None:
    """DOUBLE of numbers, and of intervals the widest of their family."""
    name = kind(type_)
    if name in SPANS:
        return WIDEST_INTERVALS[SPANS[name][0]]
    return DOUBLE if name in RANKS or name in ("decimal", "string", "void") else None


def _median(typer: Typer, node: exp.Expr) -> DataType | None:
    return _middle(typer.of(node.this))


def _percentile(typer: Typer, node: exp.Expr) -> DataType | None:
    return _per_share(typer, node.args.get("quantile"), _middle(_this(typer, node)))


def _approximate_percentile(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = _this(typer, node)
    name = kind(type_)
    if name == "string":
        type_ = DOUBLE
    elif name not in RANKS and name not in SPANS and name not in DATETIMES and name != "decimal":
        return None
    return _per_share(typer, node.args.get("quantile"), type_)


def _per_share(typer: Typer, share: object, type_: DataType | None) -> DataType | None:
    """One value for a number, an array of them for an array of numbers."""
    several = typer.of(share)
    if several is None or type_ is None:
        return None
    return Array(type_) if isinstance(several, Array) else type_


def _within_group(typer: Typer, node: exp.Expr) -> DataType | None:
    order = node.args.get("expression")
    if not isinstance(order, exp.Order) or not order.expressions:
        return None
    value = order.expressions[0].this
    if isinstance(node.this, exp.Mode):
        return typer.of(value)
    if isinstance(node.this, exp.PercentileCont | exp.PercentileDisc):
        return _per_share(typer, node.this.this, _middle(typer.of(value)))
    return typer.of(node.this) if isinstance(node.this, exp.GroupConcat) else None


def _extreme_by(typer: Typer, node: exp.Expr) -> DataType | None:
    """max_by: one value, or with a count an array of them."""
    type_ = typer.of(node.this)
    return type_ if type_ is None or node.args.get("count") is None else Array(type_)


def _joined(typer: Typer, node: exp.Expr) -> DataType | None:
    value = node.this.this if isinstance(node.this, exp.Order) else node.this
    type_ = typer.of(value)
    if kind(type_) == "binary":
        return BINARY
    return STRING if is_plain(type_) else None


def _top(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = _this(typer, node)
    return None if type_ is None else Array(Struct((Field("item", type_), Field("count", BIGINT))))


def _histogram(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(_argument(node))
    if kind(type_) not in RANKS and kind(type_) not in ("decimal", "date", "timestamp", "timestamp_ntz"):
        return None
    return None if type_ is None else Array(Struct((Field("x", type_), Field("y", DOUBLE))))


BY_CLASS: dict[type[exp.Expr], Handler] = {
    exp.Sum: _sum,
    exp.Avg: _average,
    exp.Median: _median,
    exp.Quantile: _percentile,
    exp.ApproxQuantile: _approximate_percentile,
    exp.WithinGroup: _within_group,
    exp.ArgMax: _extreme_by,
    exp.ArgMin: _extreme_by,
    exp.GroupConcat: _joined,
    exp.ApproxTopK: _top,
}

BY_NAME: dict[str, Handler] = {
    "try_sum": _sum,
    "try_avg": _average,
    "mean": _average,
    "histogram_numeric": _histogram,
}
