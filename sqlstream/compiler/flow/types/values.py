"""Spark's types as constants, and the groups of types that its rules of coercion use."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlstream.project.types.parser import TypeSyntaxError, parse_type
from sqlstream.project.types.types import Array, DataType, Decimal, Field, Map, Primitive, Struct

TINYINT, SMALLINT, INT, BIGINT = (Primitive(name) for name in ("tinyint", "smallint", "int", "bigint"))
FLOAT, DOUBLE = Primitive("float"), Primitive("double")
BOOLEAN, STRING, BINARY = Primitive("boolean"), Primitive("string"), Primitive("binary")
DATE, TIMESTAMP, TIMESTAMP_NTZ = Primitive("date"), Primitive("timestamp"), Primitive("timestamp_ntz")
VOID, VARIANT, CALENDAR_INTERVAL = Primitive("void"), Primitive("variant"), Primitive("interval")

MOST_DIGITS = 38
"""The greatest precision of a decimal (`DecimalType.MAX_PRECISION`)."""

RANKS = {"tinyint": 0, "smallint": 1, "int": 2, "bigint": 3, "float": 4, "double": 5}
"""The numeric types except decimals, with their position in Spark's order of widening."""

BY_RANK = (TINYINT, SMALLINT, INT, BIGINT, FLOAT, DOUBLE)

DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""The integral types, with the precision of the decimal that holds each (`DecimalType.forType`)."""

_YEAR_MONTH = ("year", "month")
_DAY_TIME = ("day", "hour", "minute", "second")
UNITS = {
    **{unit: ("year-month", place) for place, unit in enumerate(_YEAR_MONTH)},
    **{unit: ("day-time", place) for place, unit in enumerate(_DAY_TIME)},
    "week": ("day-time", 0),
    "millisecond": ("day-time", 3),
    "microsecond": ("day-time", 3),
}
"""The units of an interval, with the family of its type and the index of the field that holds it."""


def _intervals(family: str, units: tuple[str, ...]) -> dict[tuple[str, int, int], Primitive]:
    """Returns every interval type of one family, by its first and last field."""
    indexes = range(len(units))
    spans = [(first, last) for first in indexes for last in indexes[first:]]
    names = {(first, last): " to ".join(dict.fromkeys((units[first], units[last]))) for first, last in spans}
    return {(family, *span): Primitive(f"interval {name}") for span, name in names.items()}


INTERVALS = {**_intervals("year-month", _YEAR_MONTH), **_intervals("day-time", _DAY_TIME)}
SPANS = {interval.name: span for span, interval in INTERVALS.items()}
"""The family, first and last field of each interval type, by its name."""

YEAR_TO_MONTH = INTERVALS["year-month", 0, 1]
DAY_TO_SECOND = INTERVALS["day-time", 0, 3]
INTERVAL_DAY = INTERVALS["day-time", 0, 0]
WIDEST_INTERVALS = {"year-month": YEAR_TO_MONTH, "day-time": DAY_TO_SECOND}

DATETIMES = frozenset({"date", "timestamp", "timestamp_ntz"})

_KINDS = {Decimal: "decimal", Array: "array", Map: "map", Struct: "struct"}


def kind(type_: DataType | None) -> str:
    """Returns the name of a type without its parts: `decimal`, `array`, `interval day`.

    It is empty for types without rules here: unknown types, and text with a collation or a length.
    """
    if isinstance(type_, Primitive):
        return "" if type_.collation or type_.parameters else type_.name
    return _KINDS.get(type(type_), "")


def collated(name: str) -> DataType | None:
    """Returns the type of text with the collation `name`; None for the collations of languages."""
    name = name.upper()
    if not name.startswith(("UTF8_", "UNICODE")):
        return None
    return STRING if name == "UTF8_BINARY" else Primitive("string", (), name)


def is_plain(type_: DataType | None) -> bool:
    """Returns whether a type is known and has no collation, which text functions would pass on to their result."""
    return is_plain(type_.element) if isinstance(type_, Array) else kind(type_) != ""


def text_of(types: Sequence[DataType | None]) -> DataType | None:
    """Returns the type of a text that a function makes of values of these types, which passes on their collation."""
    if all(map(is_plain, types)):
        return STRING
    texts = {type_ for type_ in types if not is_plain(type_) or kind(type_) == "string"}
    (text,) = texts if len(texts) == 1 else (None,)
    return text if isinstance(text, Primitive) and text.collation else None


def array_of(element: DataType | None) -> Array | None:
    """Returns the array of `element`; None if that type is unknown."""
    return None if element is None else Array(element)


def map_of(key: DataType | None, value: DataType | None) -> Map | None:
    """Returns the map of these types; None if one of them is unknown."""
    return None if key is None or value is None else Map(key, value)


def struct_of(fields: Iterable[tuple[str, DataType | None]]) -> Struct | None:
    """Returns the struct of these fields; None if the type of one of them is unknown."""
    found: list[Field] = []
    for name, type_ in fields:
        if type_ is None:
            return None
        found.append(Field(name, type_))
    return Struct(tuple(found))


def read_type(ddl: str | None) -> DataType | None:
    """Returns the type that Spark's DDL names; None if there is no valid DDL."""
    try:
        return parse_type(ddl) if ddl else None
    except TypeSyntaxError:
        return None
