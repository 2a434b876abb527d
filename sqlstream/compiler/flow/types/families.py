"""Which types go together in comparisons and casts, as Spark 4.3 says of every pair with ANSI on.

`tests/spark/test_type_families.py` asks the installed Spark about every pair again.
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
_BESIDE_TEXT = frozenset({NUMBER, DATETIME, "boolean", "binary", "string"})


def family(type_: DataType | None) -> str:
    """Returns the family of a type: `number`, `datetime`, `year-month`, `day-time`, or the type's own name.

    It is empty for what no rule speaks of: an unknown type, and text with a collation.
    """
    name = kind(type_)
    return _FAMILIES.get(name, name)


def is_ordered(type_: DataType | None) -> bool | None:
    """Returns whether values of a type can be compared at all; None where it is not known."""
    if isinstance(type_, Array):
        return is_ordered(type_.element)
    if isinstance(type_, Struct):
        parts = [is_ordered(item.type) for item in type_.fields]
        return False if False in parts else None if None in parts else True
    return None if not family(type_) else kind(type_) not in _UNORDERED


def holds_variant(type_: DataType | None) -> bool:
    """Returns whether a type is VARIANT, or has one within."""
    if isinstance(type_, Map):
        return holds_variant(type_.key) or holds_variant(type_.value)
    if isinstance(type_, Struct):
        return any(holds_variant(item.type) for item in type_.fields)
    return holds_variant(type_.element) if isinstance(type_, Array) else kind(type_) == "variant"


def can_be_compared(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether Spark may compare two types; what is not known may be."""
    if is_ordered(left) is False or is_ordered(right) is False:
        return False
    if isinstance(left, Array | Struct) and isinstance(right, Array | Struct):
        return _are_alike(left, right)
    return go_together(left, right)


def _are_alike(left: DataType | None, right: DataType | None) -> bool:
    """Whether two types within others may be compared: Spark casts no text there, and nothing to a decimal."""
    if isinstance(left, Array) and isinstance(right, Array):
        return _are_alike(left.element, right.element)
    if isinstance(left, Struct) and isinstance(right, Struct):
        pairs = zip(left.fields, right.fields, strict=False)
        return len(left.fields) == len(right.fields) and all(_are_alike(one.type, other.type) for one, other in pairs)
    one, other = family(left), family(right)
    if not one or not other or "void" in (one, other):
        return True
    return one == other and ("decimal" not in (kind(left), kind(right)) or left == right)


def go_together(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether two types may have a common one, of which CASE, IF and COALESCE make their results."""
    one, other = family(left), family(right)
    if not one or not other or "void" in (one, other) or one == other:
        return True
    if "string" in (one, other):
        beside = other if one == "string" else one
        return beside in _BESIDE_TEXT or beside == "variant"
    return "interval" in (one, other) and "year-month" in (one, other)


_CASTS: dict[str, frozenset[str]] = {
    "boolean": frozenset({NUMBER}),
    "binary": frozenset({"binary"}),
    DATETIME: frozenset({DATETIME}),
    "interval": frozenset({"interval"}),
    "year-month": frozenset({NUMBER, "year-month"}),
    "day-time": frozenset({NUMBER, "day-time"}),
    "array": frozenset({"array"}),
    "map": frozenset({"map"}),
    "struct": frozenset({"struct"}),
    NUMBER: frozenset({NUMBER, "boolean", DATETIME, "year-month", "day-time"}),
}
"""What a family can be cast to beside itself, text and VARIANT. What is in it may depend on the very type."""

_NO_VARIANT = frozenset({"map", "struct", "interval", "year-month", "day-time"})


def can_be_cast(type_: DataType | None, target: DataType | None) -> bool:
    """Returns whether a CAST may be possible; what is not known may be."""
    one, other = family(type_), family(target)
    if not one or not other or "void" in (one, other) or one == other or other == "string" or one == "variant":
        return one != "variant" or other not in ("interval", "year-month", "day-time")
    if one == "string":
        return other not in ("array", "map", "struct")
    if other == "variant":
        return one not in _NO_VARIANT
    if other == DATETIME and one == NUMBER:
        return kind(target) == "timestamp"
    if other == NUMBER and one == DATETIME:
        return kind(type_) == "timestamp"
    if {one, other} & {"year-month", "day-time"} and {kind(type_), kind(target)} & {"float", "double"}:
        return False
    return other in _CASTS.get(one, frozenset())
