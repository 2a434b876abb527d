"""Which types Spark 4.3 can compare, cast and combine, with ANSI mode on.

`tests/spark/test_type_families.py` asks the installed Spark about every pair of types.
"""

from __future__ import annotations

from sqlstream.compiler.flow.types.values import RANKS, SPANS, kind
from sqlstream.project.types.types import Array, DataType, Map, Struct

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
        are_incompatible(one.type, other.type) or (renamed and _are_different(one.type, other.type))
        for one, other in pairs
    )


def _are_different(left: DataType, right: DataType) -> bool:
    return kind(left) != kind(right) and {family(left), family(right)} <= _SEPARATE


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
        return one != "variant" or other not in ("interval", "year-month", "day-time")
    if one == "string":
        return other not in ("array", "map", "struct")
    if other == "variant":
        return one not in _NO_VARIANT
    if {one, other} == {NUMBER, DATETIME}:
        return "timestamp" in (kind(type_), kind(target))
    if {one, other} & {"year-month", "day-time"} and {kind(type_), kind(target)} & {"float", "double"}:
        return False
    return other in _CASTS.get(one, frozenset())
