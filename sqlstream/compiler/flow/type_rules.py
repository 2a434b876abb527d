"""Which types Spark 4.3 can compare, cast and combine, with ANSI mode on, and the types of the results.

`tests/spark/test_type_families.py` asks the installed Spark about every pair of types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from sqlstream.project.types.data_types import Array, DataType, Decimal, Field, Map, Primitive, Struct, Unknown
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type

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


def may_be_event_time(type_: DataType | None) -> bool:
    """Returns whether a column of this type can have a watermark; true for unknown types."""
    return type_ is None or isinstance(type_, Unknown) or type_ == TIMESTAMP


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


def field_type(base: DataType | None, name: str) -> DataType | None:
    """Returns the type of `base.name`: a struct's field, that field of every struct in an array, or a map's value."""
    if isinstance(base, Struct):
        field = base.field(name)
        return None if field is None else field.type
    if isinstance(base, Array) and isinstance(base.element, Struct):
        return array_of(field_type(base.element, name))
    return base.value if isinstance(base, Map) else None


def element_type(base: DataType | None) -> DataType | None:
    """Returns the type of an array's element or a map's value."""
    if isinstance(base, Array):
        return base.element
    return base.value if isinstance(base, Map) else None


NUMBER, DATETIME = "number", "datetime"

_FAMILIES = {
    **dict.fromkeys((*RANKS, "decimal"), NUMBER),
    **dict.fromkeys(("date", "timestamp", "timestamp_ntz"), DATETIME),
    **{name: span[0] for name, span in SPANS.items()},
}
_UNORDERED = frozenset({"map", "variant", "interval"})
_WITH_TEXT = frozenset({NUMBER, DATETIME, "boolean", "binary", "string"})
"""The families that text is cast to."""

_SEPARATE = _WITH_TEXT | {"year-month", "day-time", "interval", "array", "map", "struct", "variant"}
"""The families that Spark never widens to one another, except text (`AnsiTypeCoercion.findWiderTypeForTwo`)."""


def family(type_: DataType | None) -> str:
    """Returns the family of a type: `number`, `datetime`, `year-month`, `day-time`, or the type's own name.

    It is empty for types without rules here: unknown types, and text with a collation.
    """
    name = kind(type_)
    return _FAMILIES.get(name, name)


def is_ordered(type_: DataType | None) -> bool | None:
    """Returns whether values of a type can be compared; None if that is unknown."""
    if isinstance(type_, Array):
        return is_ordered(type_.element)
    if isinstance(type_, Struct):
        parts = [is_ordered(item.type) for item in type_.fields]
        return False if False in parts else None if None in parts else True
    return None if not family(type_) else kind(type_) not in _UNORDERED


def may_be_large(type_: DataType | None) -> bool:
    """Returns whether values of a type have no fixed size. A database may leave them out of a change event."""
    return family(type_) not in ("number", "datetime", "boolean", "year-month", "day-time")


def contains(type_: DataType | None, name: str) -> bool:
    """Returns whether a type, or a type inside it, has the kind `name`."""
    if kind(type_) == name:
        return True
    if isinstance(type_, Map):
        return contains(type_.key, name) or contains(type_.value, name)
    if isinstance(type_, Struct):
        return any(contains(item.type, name) for item in type_.fields)
    return isinstance(type_, Array) and contains(type_.element, name)


def can_be_compared(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether Spark may compare two types. It may compare unknown types."""
    if is_ordered(left) is False or is_ordered(right) is False:
        return False
    if isinstance(left, Array | Struct) and isinstance(right, Array | Struct):
        return _are_alike(left, right)
    return have_common_type(left, right)


def _are_alike(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether two element or field types may be compared: Spark does not cast text or to decimals there."""
    if isinstance(left, Array) and isinstance(right, Array):
        return _are_alike(left.element, right.element)
    if isinstance(left, Struct) and isinstance(right, Struct):
        pairs = zip(left.fields, right.fields, strict=False)
        return len(left.fields) == len(right.fields) and all(_are_alike(one.type, other.type) for one, other in pairs)
    one, other = family(left), family(right)
    if not one or not other or "void" in (one, other):
        return True
    return one == other and ("decimal" not in (kind(left), kind(right)) or left == right)


def have_common_type(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether CASE, IF and COALESCE may return values of both types. Unknown types may have a common type."""
    families = {family(left), family(right)}
    if len(families) == 1 or families & {"", "void"}:
        return True
    return ("string" in families and families <= _WITH_TEXT | {"variant"}) or families == {"interval", "year-month"}


def are_incompatible(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether UNION, EXCEPT and INTERSECT certainly cannot put values of both types into one column."""
    if left is None or right is None or left == right:
        return False
    if isinstance(left, Array) and isinstance(right, Array):
        return are_incompatible(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return are_incompatible(left.key, right.key) or are_incompatible(left.value, right.value)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return _are_structs_incompatible(left, right)
    families = {family(left), family(right)}
    return len(families) > 1 and families <= _SEPARATE and not ("string" in families and families <= _WITH_TEXT)


def _are_structs_incompatible(left: Struct, right: Struct) -> bool:
    """Fields match by position. Their names may differ only if all types are already the same."""
    if len(left.fields) != len(right.fields):
        return True
    pairs = list(zip(left.fields, right.fields, strict=True))
    renamed = any(one.name.lower() != other.name.lower() for one, other in pairs)
    return any(
        are_incompatible(one.type, other.type)
        or (renamed and kind(one.type) != kind(other.type) and {family(one.type), family(other.type)} <= _SEPARATE)
        for one, other in pairs
    )


_CASTS: dict[str, frozenset[str]] = {
    "boolean": frozenset({NUMBER}),
    DATETIME: frozenset({DATETIME}),
    "year-month": frozenset({NUMBER}),
    "day-time": frozenset({NUMBER}),
    NUMBER: frozenset({"boolean", DATETIME, "year-month", "day-time"}),
}
"""The families that a family can be cast to, besides itself, text and VARIANT. Some casts depend on the exact type."""

_NO_VARIANT = frozenset({"map", "struct", "interval", "year-month", "day-time"})


def can_be_cast(type_: DataType | None, target: DataType | None) -> bool:
    """Returns whether a CAST may be possible. It may be possible for unknown types."""
    one, other = family(type_), family(target)
    if not one or not other or "void" in (one, other) or one == other or other == "string" or one == "variant":
        # a VARIANT can be cast to all types but intervals
        return one != "variant" or other not in ("interval", "year-month", "day-time")
    if one == "string":
        return other not in ("array", "map", "struct")
    if other == "variant":
        return one not in _NO_VARIANT
    if {one, other} == {NUMBER, DATETIME}:
        return "timestamp" in (kind(type_), kind(target))  # neither DATE nor TIMESTAMP_NTZ
    if {one, other} & {"year-month", "day-time"} and {kind(type_), kind(target)} & {"float", "double"}:
        return False
    return other in _CASTS.get(one, frozenset())


Leaf = Callable[[DataType, DataType], DataType | None]

_TAKEN_FROM_TEXT = frozenset({*DATETIMES, "boolean", "binary"})
"""The types to which text is cast beside them. Beside a number it becomes BIGINT or DOUBLE."""


def common_type(left: DataType, right: DataType) -> DataType | None:
    """Returns the type that can hold values of both types; None if Spark has none, or it is unknown."""
    return _common(left, right, _wider)


def common_type_of(types: Iterable[DataType | None], pair: Leaf = common_type) -> DataType | None:
    """Returns the common type of all types, combined from the left as Spark does; `void` for no types."""
    found: DataType = VOID
    for type_ in types:
        together = None if type_ is None else pair(found, type_)
        if together is None:
            return None
        found = together
    return found


def common_type_but_text(left: DataType, right: DataType) -> DataType | None:
    """Returns the common type for GREATEST and LEAST, which do not cast text to other types."""
    return _common(left, right, _wider_but_text)


def tightest_type(left: DataType, right: DataType) -> DataType | None:
    """Returns the narrowest type that holds both without loss, for bitwise operators and intervals."""
    return _common(left, right, _tightest)


def element_of_both(left: DataType, right: DataType) -> DataType | None:
    """Returns the element type of array_append and array_union, which keep FLOAT and do not widen intervals."""
    return _common(left, right, _tightest_element)


def _common(left: DataType, right: DataType, leaf: Leaf) -> DataType | None:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return None
    if left == right or right == VOID:
        return left
    if left == VOID:
        return right
    if isinstance(left, Array) and isinstance(right, Array):
        return array_of(_common(left.element, right.element, leaf))
    if isinstance(left, Map) and isinstance(right, Map):
        # keys must not become null, so this does not cast keys from text or between decimals
        return map_of(_common(left.key, right.key, _tightest), _common(left.value, right.value, leaf))
    if isinstance(left, Struct) and isinstance(right, Struct):
        return _common_struct(left, right, leaf)
    return leaf(left, right)


def _common_struct(left: Struct, right: Struct, leaf: Leaf) -> Struct | None:
    if [field.name.lower() for field in left.fields] != [field.name.lower() for field in right.fields]:
        return None
    pairs = zip(left.fields, right.fields, strict=True)
    return struct_of((one.name, _common(one.type, other.type, leaf)) for one, other in pairs)


def _tightest(left: DataType, right: DataType) -> DataType | None:
    """Returns the result of `findTightestCommonType`."""
    one, other = kind(left), kind(right)
    if one in RANKS and other in RANKS:
        widest = max(RANKS[one], RANKS[other])
        # in ANSI mode, a whole number beside a FLOAT makes a DOUBLE, which keeps more of its digits
        return DOUBLE if BY_RANK[widest].name == "float" and one != other else BY_RANK[widest]
    if isinstance(left, Decimal) and other in DIGITS:
        return left if left.precision - left.scale >= DIGITS[other] else None
    if isinstance(right, Decimal) and one in DIGITS:
        return right if right.precision - right.scale >= DIGITS[one] else None
    if one in DATETIMES and other in DATETIMES:
        return TIMESTAMP if "timestamp" in (one, other) else TIMESTAMP_NTZ
    return _wider_interval(one, other)


def _tightest_element(left: DataType, right: DataType) -> DataType | None:
    """Returns the result of `findTightestCommonType` without ANSI mode, which functions on arrays still use."""
    one, other = kind(left), kind(right)
    if one in RANKS and other in RANKS:
        return BY_RANK[max(RANKS[one], RANKS[other])]
    return None if one in SPANS else _tightest(left, right)


def _wider_interval(one: str, other: str) -> DataType | None:
    if one not in SPANS or other not in SPANS or SPANS[one][0] != SPANS[other][0]:
        return None
    family, first, last = SPANS[one]
    return INTERVALS[family, min(first, SPANS[other][1]), max(last, SPANS[other][2])]


def _wider_but_text(left: DataType, right: DataType) -> DataType | None:
    return _tightest(left, right) or _wider_decimal(left, right)


def _wider(left: DataType, right: DataType) -> DataType | None:
    """Returns the result of `findWiderTypeForTwo`."""
    return _wider_but_text(left, right) or _from_text(left, right) or _from_text(right, left)


def _wider_decimal(left: DataType, right: DataType) -> DataType | None:
    """Returns the result of `findWiderTypeForDecimal`, which keeps the digits before the point if not all fit."""
    if not isinstance(left, Decimal) and not isinstance(right, Decimal):
        return None
    if kind(left) in ("float", "double") or kind(right) in ("float", "double"):
        return DOUBLE
    one, other = as_decimal(left), as_decimal(right)
    if one is None or other is None:
        return None
    scale = max(one.scale, other.scale)
    precision = max(one.precision - one.scale, other.precision - other.scale) + scale
    excess = max(precision - MOST_DIGITS, 0)
    return Decimal(precision - excess, max(scale - excess, 0))


def as_decimal(type_: DataType) -> Decimal | None:
    """Returns a decimal unchanged, and for an integral type the decimal that holds it; None for other types."""
    if isinstance(type_, Decimal):
        return type_
    digits = DIGITS.get(kind(type_))
    return None if digits is None else Decimal(digits, 0)


def _from_text(left: DataType, right: DataType) -> DataType | None:
    """Returns the result of `findWiderTypeForString` if the left type is text."""
    if kind(left) != "string":
        return None
    other = kind(right)
    if other in DIGITS:
        return BIGINT
    if other in ("float", "double", "decimal"):
        return DOUBLE
    return right if other in _TAKEN_FROM_TEXT else None


# The result types of arithmetic on numbers, dates, timestamps and intervals.
#
# The rules are those of `BinaryArithmeticWithDatetimeResolver.scala` and of each operator's `resultDecimalType`.

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
    # hours move a date to a time of day, so the result is a timestamp
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
