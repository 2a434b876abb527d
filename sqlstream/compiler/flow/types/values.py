"""Spark's types as ready values, and the families that its rules of coercion speak of."""

from __future__ import annotations

from sqlstream.project.types.types import Array, DataType, Decimal, Map, Primitive, Struct

TINYINT, SMALLINT, INT, BIGINT = (Primitive(name) for name in ("tinyint", "smallint", "int", "bigint"))
FLOAT, DOUBLE = Primitive("float"), Primitive("double")
BOOLEAN, STRING, BINARY = Primitive("boolean"), Primitive("string"), Primitive("binary")
DATE, TIMESTAMP, TIMESTAMP_NTZ = Primitive("date"), Primitive("timestamp"), Primitive("timestamp_ntz")
VOID, VARIANT, CALENDAR_INTERVAL = Primitive("void"), Primitive("variant"), Primitive("interval")

MOST_DIGITS = 38
"""The greatest precision of a decimal (`DecimalType.MAX_PRECISION`)."""

RANKS = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3, "float": 4, "double": 5}
"""The numeric types but decimals, each with its place in Spark's order of widening."""

BY_RANK = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The integral types, each with the digits of the decimal that holds it (`DecimalType.forType`)."""

_YEAR_MONTH = ("year", "month")
_DAY_TIME = ("day", "hour", "minute", "second")
UNITS = {
    **{unit: ("year-month", place) for place, unit in enumerate(_YEAR_MONTH)},
    **{unit: ("day-time", place) for place, unit in enumerate(_DAY_TIME)},
    "week": ("day-time", 0),
    "millisecond": ("day-time", 3),
    "microsecond": ("day-time", 3),
}
"""The units of an interval: the family of its type, and the field that holds it."""


def _spans(family: str, units: tuple[str, ...]) -> dict[tuple[str, int, int], Primitive]:
    """Returns every interval type of one family, by its first and last field."""
    return {
        (family, first, last): Primitive(
            f"interval {units[first]}" if first == last else f"interval {units[first]} to {units[last]}"
        )
        for first in range(len(units))
        for last in range(first, len(units))
    }


INTERVALS = {**_spans("year-month", _YEAR_MONTH), **_spans("day-time", _DAY_TIME)}
SPANS = {interval.name: span for span, interval in INTERVALS.items()}
"""An interval type's family, first and last field, by its name."""

YEAR_TO_MONTH = INTERVALS["year-month", 0, 1]
DAY_TO_SECOND = INTERVALS["day-time", 0, 3]
INTERVAL_DAY = INTERVALS["day-time", 0, 0]
WIDEST_INTERVALS = {"year-month": YEAR_TO_MONTH, "day-time": DAY_TO_SECOND}

DATETIMES = frozenset({"date", "timestamp", "timestamp_ntz"})

_KINDS = {Decimal: "decimal", Array: "array", Map: "map", Struct: "struct"}


def kind(type_: DataType | None) -> str:
    """Returns the name of a type without its parts: `decimal`, `array`, `interval day`.

    It is empty for what no rule here speaks of: an unknown type, and text that has a collation or a length.
    """
    if isinstance(type_, Primitive):
        return "" if type_.collation or type_.parameters else type_.name
    return _KINDS.get(type(type_), "")


def is_plain(type_: DataType | None) -> bool:
    """Returns whether a type is known and holds no text with a collation, which functions of text would hand on."""
    if isinstance(type_, Array):
        return is_plain(type_.element)
    return kind(type_) != ""
