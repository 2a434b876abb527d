"""The common type of several types, as Spark finds it for UNION, CASE and COALESCE (`AnsiTypeCoercion.scala`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlstream.compiler.flow.types.values import (
    BIGINT,
    BY_RANK,
    DATETIMES,
    DIGITS,
    DOUBLE,
    INTERVALS,
    MOST_DIGITS,
    RANKS,
    SPANS,
    TIMESTAMP,
    TIMESTAMP_NTZ,
    VOID,
    array_of,
    kind,
    map_of,
    struct_of,
)
from sqlstream.project.types.types import Array, DataType, Decimal, Map, Struct, Unknown

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
