"""The types of arithmetic on dates, timestamps and intervals (`BinaryArithmeticWithDatetimeResolver.scala`)."""

from __future__ import annotations

from sqlstream.compiler.flow.types.common_type import tightest_type
from sqlstream.compiler.flow.types.values import (
    CALENDAR_INTERVAL,
    DATE,
    DATETIMES,
    DAY_TO_SECOND,
    INTERVAL_DAY,
    RANKS,
    SPANS,
    STRING,
    TIMESTAMP,
    WIDEST_INTERVALS,
    kind,
)
from sqlstream.project.types.types import DataType

_DAYS = frozenset({"tinyint", "smallint", "int"})
"""What counts days where it is added to a date."""

_FACTORS = frozenset({*RANKS, "decimal", "string"})


def plus_type(left: DataType, right: DataType) -> DataType | None:
    """Returns the type of `left + right` where one of them is a date, a timestamp or an interval."""
    if kind(left) in DATETIMES:
        return _moved(left, right)
    if kind(right) in DATETIMES:
        return _moved(right, left)
    return _text_moved(left, right) or _text_moved(right, left) or _intervals(left, right)


def minus_type(left: DataType, right: DataType) -> DataType | None:
    """Returns the type of `left - right` where one of them is a date, a timestamp or an interval."""
    one, other = kind(left), kind(right)
    if one in DATETIMES or other in DATETIMES:
        return _difference(one, other) or (_moved(left, right) if one in DATETIMES else None)
    return _text_moved(left, right) or _intervals(left, right)


def cannot_be_moved(operator: str, left: DataType | None, right: DataType | None) -> bool:
    """Returns whether Spark surely refuses `+` or `-` of two types of which one is a date or timestamp."""
    kinds = {kind(left), kind(right)}
    if left is None or right is None or kinds & {"", "void"} or kinds.isdisjoint(DATETIMES):
        return False
    return (plus_type if operator == "+" else minus_type)(left, right) is None


def scaled_type(interval: DataType, factor: DataType) -> DataType | None:
    """Returns the type of an interval times or by a number: the widest of its family."""
    name = kind(interval)
    if kind(factor) not in _FACTORS:
        return None
    if name == "interval":
        return CALENDAR_INTERVAL
    return WIDEST_INTERVALS[SPANS[name][0]] if name in SPANS else None


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


def _text_moved(text: DataType, by: DataType) -> DataType | None:
    """Text that is moved by days or less stays text."""
    span = SPANS.get(kind(by))
    return STRING if kind(text) == "string" and span is not None and span[0] == "day-time" else None


def _difference(one: str, other: str) -> DataType | None:
    pair = {one, other}
    if not pair <= {*DATETIMES, "string"}:
        return None
    return INTERVAL_DAY if pair <= {"date", "string"} else DAY_TO_SECOND


def _intervals(left: DataType, right: DataType) -> DataType | None:
    one, other = kind(left), kind(right)
    if one == other == "interval":
        return CALENDAR_INTERVAL
    return tightest_type(left, right) if one in SPANS and other in SPANS else None
