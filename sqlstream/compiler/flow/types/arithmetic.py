"""The result types of arithmetic on numbers, dates, timestamps and intervals.

The rules are those of `BinaryArithmeticWithDatetimeResolver.scala` and of each operator's `resultDecimalType`.
"""

from __future__ import annotations

from sqlstream.compiler.flow.types.common_type import as_decimal, tightest_type
from sqlstream.compiler.flow.types.families import NUMBER, family
from sqlstream.compiler.flow.types.values import (
    BIGINT,
    CALENDAR_INTERVAL,
    DATE,
    DATETIMES,
    DAY_TO_SECOND,
    DIGITS,
    DOUBLE,
    INTERVAL_DAY,
    MOST_DIGITS,
    SPANS,
    STRING,
    TIMESTAMP,
    WIDEST_INTERVALS,
    kind,
)
from sqlstream.project.types.types import DataType, Decimal

_LEAST_SCALE = 6
"""The digits after the point that a decimal keeps if it cannot hold all digits (`MINIMUM_ADJUSTED_SCALE`)."""

_CAST_TO_NUMBERS = frozenset({"string", "void"})

_DAYS = frozenset({"tinyint", "smallint", "int"})
"""The types that count days when they are added to a date."""


def operator_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Returns the type of `+`, `-`, `*`, `/` or `%`; None if Spark does not support it for these types."""
    number = _number_type(operator, left, right)
    if number is not None:
        return number
    if operator in "+-":
        return _moved_type(operator, left, right)
    scaled = _scaled(left, right) if operator in "*/" else None
    return scaled or (_scaled(right, left) if operator == "*" else None)


def cannot_be_moved(operator: str, left: DataType | None, right: DataType | None) -> bool:
    """Returns whether Spark certainly rejects `+` or `-` of two types, one of which is a date or timestamp."""
    kinds = {kind(left), kind(right)}
    if left is None or right is None or kinds & {"", "void"} or kinds.isdisjoint(DATETIMES):
        return False
    return _moved_type(operator, left, right) is None


def _number_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Returns the type of an operator on numbers, or on NULL or text beside a number."""
    one, other = kind(left), kind(right)
    if one == "void" and (other == "void" or (operator == "/" and family(right) == NUMBER)):
        return DOUBLE
    if one in _CAST_TO_NUMBERS and other in _CAST_TO_NUMBERS:
        return None
    left, right = _as_number(left, right), _as_number(right, left)
    if family(left) != NUMBER or family(right) != NUMBER:
        return None
    if not isinstance(left, Decimal) and not isinstance(right, Decimal):
        return DOUBLE if operator == "/" else tightest_type(left, right)
    one_decimal, other_decimal = as_decimal(left), as_decimal(right)
    if one_decimal is None or other_decimal is None:
        return DOUBLE
    return _decimal(operator, one_decimal, other_decimal)


def _as_number(type_: DataType, beside: DataType) -> DataType:
    """Returns the type to which NULL or text beside a number is cast, and other types unchanged."""
    if kind(type_) == "void":
        return beside
    if kind(type_) == "string":
        return BIGINT if kind(beside) in DIGITS else DOUBLE
    return type_


def _decimal(operator: str, one: Decimal, other: Decimal) -> Decimal:
    """Returns the `resultDecimalType` of `Add`, `Subtract`, `Multiply`, `Divide` or `Remainder`."""
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
    """Returns the result of `DecimalType.adjustPrecisionScale`."""
    if precision <= MOST_DIGITS:
        return Decimal(precision, scale)
    whole = precision - scale
    return Decimal(MOST_DIGITS, max(MOST_DIGITS - whole, min(scale, _LEAST_SCALE)))


def _moved_type(operator: str, left: DataType, right: DataType) -> DataType | None:
    """Returns the type of `+` or `-` if one side is a date, a timestamp or an interval."""
    one, other = kind(left), kind(right)
    if operator == "-" and (one in DATETIMES or other in DATETIMES):
        return _difference(one, other) or (_moved(left, right) if one in DATETIMES else None)
    if one in DATETIMES or other in DATETIMES:
        return _moved(left, right) if one in DATETIMES else _moved(right, left)
    moved = _moved_text(left, right) or (_moved_text(right, left) if operator == "+" else None)
    if moved is not None or one == other == "interval":
        return moved or CALENDAR_INTERVAL
    return tightest_type(left, right) if one in SPANS and other in SPANS else None


def _moved(moment: DataType, by: DataType) -> DataType | None:
    name, other = kind(moment), kind(by)
    if other == "interval" or (other in SPANS and name != "date"):
        return moment
    if name != "date":
        return None
    if other in _DAYS:
        return DATE
    if other not in SPANS:
        return None
    return DATE if SPANS[other][0] == "year-month" or by == INTERVAL_DAY else TIMESTAMP


def _moved_text(text: DataType, by: DataType) -> DataType | None:
    """Returns STRING for text plus or minus an interval of days or less."""
    return STRING if kind(text) == "string" and family(by) == "day-time" else None


def _difference(one: str, other: str) -> DataType | None:
    pair = {one, other}
    if not pair <= {*DATETIMES, "string"}:
        return None
    return INTERVAL_DAY if pair <= {"date", "string"} else DAY_TO_SECOND


def _scaled(interval: DataType, factor: DataType) -> DataType | None:
    """Returns the type of an interval multiplied or divided by a number: the widest of its family."""
    if family(factor) not in (NUMBER, "string"):
        return None
    return CALENDAR_INTERVAL if kind(interval) == "interval" else WIDEST_INTERVALS.get(family(interval))
