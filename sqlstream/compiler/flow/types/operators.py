"""The types of operators: arithmetic on numbers here, on dates and intervals in `time_operators`, bits and logic."""

from __future__ import annotations

from sqlglot import exp

from sqlstream.compiler.flow.types.common_type import as_decimal, tightest_type
from sqlstream.compiler.flow.types.literals import number_type
from sqlstream.compiler.flow.types.time_operators import minus_type, plus_type, scaled_type
from sqlstream.compiler.flow.types.typer import Handler, Typer, argument
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BOOLEAN,
    BY_RANK,
    DIGITS,
    DOUBLE,
    INT,
    MOST_DIGITS,
    RANKS,
    SPANS,
    kind,
)
from sqlstream.project.types.types import DataType, Decimal

_LEAST_SCALE = 6
"""The digits behind the point that stay where a decimal has no room for all (`MINIMUM_ADJUSTED_SCALE`)."""

_UNNUMBERED = frozenset({"string", "void"})

_NUMBERS = frozenset({*RANKS, "decimal"})


def number_operator(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Returns the type of `+`, `-`, `*`, `/` or `%` on numbers, and on NULL or text beside a number."""
    one, other = kind(left), kind(right)
    if one == "void" and (other == "void" or (operator == "/" and other in _NUMBERS)):
        return DOUBLE
    if one in _UNNUMBERED and other in _UNNUMBERED:
        return None
    if one in _UNNUMBERED:
        left = _as_number(one, right)
    if other in _UNNUMBERED:
        right = _as_number(other, left)
    one, other = kind(left), kind(right)
    if one not in _NUMBERS or other not in _NUMBERS:
        return None
    if "decimal" in (one, other):
        return _with_decimal(operator, left, right)
    return DOUBLE if operator == "/" else tightest_type(left, right)


def _as_number(written: str, beside: DataType) -> DataType:
    """What NULL or text becomes beside a number."""
    if written == "void":
        return beside
    return BIGINT if kind(beside) in DIGITS else DOUBLE


def _with_decimal(operator: str, left: DataType, right: DataType) -> DataType | None:
    one, other = as_decimal(left), as_decimal(right)
    return DOUBLE if one is None or other is None else _decimal(operator, one, other)


def _decimal(operator: str, one: Decimal, other: Decimal) -> Decimal:
    """The rules that `Add`, `Multiply`, `Divide` and `Remainder` state above their `resultDecimalType`."""
    whole, other_whole = one.precision - one.scale, other.precision - other.scale
    scale = max(one.scale, other.scale)
    if operator == "*":
        return _fitting(one.precision + other.precision + 1, one.scale + other.scale)
    if operator == "/":
        scale = max(_LEAST_SCALE, one.scale + other.precision + 1)
        return _fitting(whole + other.scale + scale, scale)
    if operator == "%":
        return _fitting(min(whole, other_whole) + scale, scale)
    return _fitting(max(whole, other_whole) + scale + 1, scale)


def _fitting(precision: int, scale: int) -> Decimal:
    """`DecimalType.adjustPrecisionScale`."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def operands(typer: Typer, left: exp.Expr, right: exp.Expr) -> tuple[DataType, DataType] | None:
    """Returns the types of both sides, where a whole number beside a decimal has only the digits written."""
    one, other = typer.of(left), typer.of(right)
    if one is None or other is None:
        return None
    if isinstance(one, Decimal) and kind(other) in DIGITS:
        other = _digits_written(typer, right, other)
    elif isinstance(other, Decimal) and kind(one) in DIGITS:
        one = _digits_written(typer, left, one)
    return None if one is None or other is None else (one, other)


def _digits_written(typer: Typer, node: exp.Expr, type_: DataType) -> DataType | None:
    while isinstance(node, exp.Paren):
        node = node.this
    node = node.this if isinstance(node, exp.Neg) else node
    if isinstance(node, exp.TryCast):  # 1L
        end = node.this.meta.get("end")
        node = node.this if end is not None and typer.sql[end].isalpha() else node
    if not isinstance(node, exp.Literal) or node.is_string:
        return type_
    if _has_plus(typer.sql, node.meta.get("start", 0)):
        return None
    return Decimal(max(len(node.name.lstrip("0")), 1), 0)


def _has_plus(sql: str, start: int) -> bool:
    """Whether a sign stands before a number that sqlglot forgets and Spark takes for an operator: `a * +1`."""
    before = sql[:start].rstrip()
    return before.endswith("+") and before[:-1].rstrip()[-1:] in set("+-*/%(,=<>|")


def _arithmetic(operator: str) -> Handler:
    """The rule for an operator between two operands."""

    def type_of_node(typer: Typer, node: exp.Expr) -> DataType | None:
        types = operands(typer, node.this, node.args["expression"])
        return None if types is None else operator_type(operator, *types)

    return type_of_node


def operator_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Returns the type of an arithmetic operator on any operands."""
    number = number_operator(operator, left, right)
    if number is not None:
        return number
    if operator == "+":
        return plus_type(left, right)
    if operator == "-":
        return minus_type(left, right)
    if operator == "*":
        return scaled_type(left, right) or scaled_type(right, left)
    return scaled_type(left, right) if operator == "/" else None


def sign_type(typer: Typer, node: exp.Expr) -> DataType | None:
    """Returns the type of `-x` and `abs(x)`: that of x, DOUBLE for text and NULL."""
    value = node.this
    if isinstance(node, exp.Neg) and isinstance(value, exp.Literal) and not value.is_string:
        return number_type(value.name, negative=True)
    return _signed(typer.of(value))


def _positive(typer: Typer, node: exp.Expr) -> DataType | None:
    return _signed(typer.of(argument(node)))


def _plus_sign(typer: Typer, node: exp.Expr) -> DataType | None:
    """`+x`, which `parse` makes a call of `positive` without a place."""
    return _positive(typer, node) if node.this == "positive" else None


def _signed(type_: DataType | None) -> DataType | None:
    name = kind(type_)
    if name in _UNNUMBERED:
        return DOUBLE
    return type_ if name in _NUMBERS or name in SPANS or name == "interval" else None


def _bits(typer: Typer, node: exp.Expr) -> DataType | None:
    left, right = typer.of(node.this), typer.of(node.args["expression"])
    found = None if left is None or right is None else tightest_type(left, right)
    return found if kind(found) in DIGITS else None


def _negated_bits(typer: Typer, node: exp.Expr) -> DataType | None:
    type_ = typer.of(node.this)
    return type_ if kind(type_) in DIGITS else None


def shifted_type(type_: DataType | None) -> DataType | None:
    """Returns the type of a number that is shifted: INT unless it is BIGINT."""
    name = kind(type_)
    if name not in DIGITS:
        return None
    return BY_RANK[max(RANKS[name], RANKS[INT.name])]


def _logic(_typer: Typer, _node: exp.Expr) -> DataType:
    return BOOLEAN


_LOGICAL = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ),
    *(exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Exists, exp.Any, exp.All),
)

BY_CLASS: dict[type[exp.Expr], Handler] = {
    **dict.fromkeys(_LOGICAL, _logic),
    exp.Add: _arithmetic("+"),
    exp.SafeAdd: _arithmetic("+"),
    exp.Sub: _arithmetic("-"),
    exp.SafeSubtract: _arithmetic("-"),
    exp.Mul: _arithmetic("*"),
    exp.SafeMultiply: _arithmetic("*"),
    exp.Div: _arithmetic("/"),
    exp.SafeDivide: _arithmetic("/"),
    exp.Mod: _arithmetic("%"),
    exp.IntDiv: lambda _typer, _node: BIGINT,
    exp.Anonymous: _plus_sign,
    exp.Neg: sign_type,
    exp.Negative: sign_type,
    exp.Abs: sign_type,
    exp.BitwiseAnd: _bits,
    exp.BitwiseOr: _bits,
    exp.BitwiseXor: _bits,
    exp.BitwiseNot: _negated_bits,
    exp.BitwiseLeftShift: lambda typer, node: shifted_type(typer.of(node.this)),
    exp.BitwiseRightShift: lambda typer, node: shifted_type(typer.of(node.this)),
}


def _two(operator: str) -> Handler:
    """The rule for a function of two operands, such as `pmod`, that sqlglot does not know."""

    def type_of_node(typer: Typer, node: exp.Expr) -> DataType | None:
        if len(node.expressions) != len(("left", "right")):
            return None
        types = operands(typer, *node.expressions)
        return None if types is None else operator_type(operator, *types)

    return type_of_node


BY_NAME: dict[str, Handler] = {
    "pmod": _two("%"),
    "try_mod": _two("%"),
    "shiftrightunsigned": lambda typer, node: shifted_type(typer.of(argument(node))),
    "positive": _positive,
}
