"""The types of functions that round."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import as_decimal
from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import BIGINT, DOUBLE, MOST_DIGITS, RANKS, kind
from sqlstream.project.types.types import DataType, Decimal

_EXACT = {"float": Decimal(14, 7), "double": Decimal(30, 15), "string": Decimal(38, 18)}
"""The decimals that ceil and floor to some digits take numbers as (`DecimalType.forType`)."""


def _rounded(typer: Typer, node: exp.Expr) -> DataType | None:
    return _round(typer.of(node.this), node.args.get("decimals"))


def _round_by_name(typer: Typer, node: exp.Expr) -> DataType | None:
    return _round(typer.of(argument(node)), argument(node, 1))


def _round(type_: DataType | None, digits: exp.Expr | None) -> DataType | None:
    name = kind(type_)
    if name in ("string", "void"):
        return DOUBLE
    if name in RANKS:
        return type_
    scale = _digits(digits)
    return _to_scale(type_, scale) if isinstance(type_, Decimal) and scale is not None else None


def _digits(node: exp.Expr | None) -> int | None:
    """The number of digits behind the point that is written out."""
    if node is None:
        return 0
    negative = isinstance(node, exp.Neg)
    number = node.this if negative else node
    if not isinstance(number, exp.Literal) or number.is_string or not number.name.isdecimal():
        return None
    return -int(number.name) if negative else int(number.name)


def _to_scale(type_: Decimal, scale: int) -> Decimal:
    """`RoundBase.dataType`: rounding may need one more digit before the point."""
    whole = type_.precision - type_.scale + 1
    if scale < 0:
        return Decimal(min(max(whole, 1 - scale), MOST_DIGITS), 0)
    kept = min(type_.scale, scale)
    return Decimal(min(whole + kept, MOST_DIGITS), kept)


def _to_whole(typer: Typer, node: exp.Expr) -> DataType | None:
    """Ceil and floor."""
    type_ = typer.of(node.this)
    digits = node.args.get("decimals")
    if digits is not None:
        return _to_digits(type_, _digits(digits))
    if isinstance(type_, Decimal):
        return Decimal(min(type_.precision - type_.scale + 1, MOST_DIGITS), 0)
    return BIGINT if kind(type_) in RANKS or kind(type_) in ("string", "void") else None


def _to_digits(type_: DataType | None, scale: int | None) -> DataType | None:
    if type_ is None or scale is None:
        return None
    exact = _EXACT.get(kind(type_)) or as_decimal(type_)
    return None if exact is None else _to_scale(exact, scale)


BY_CLASS: dict[type[exp.Expr], Handler] = {exp.Round: _rounded, exp.Ceil: _to_whole, exp.Floor: _to_whole}
BY_NAME: dict[str, Handler] = {"bround": _round_by_name}
