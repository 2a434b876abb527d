"""Whether two types surely have no common one, so that UNION, EXCEPT and INTERSECT cannot put them into one column."""

from __future__ import annotations

from sqlstream.compiler.flow.types.values import DATETIMES, DIGITS, SPANS, kind
from sqlstream.project.types.types import Array, DataType, Map, Struct

_FAMILIES = {
    **dict.fromkeys((*DIGITS, "float", "double", "decimal"), "number"),
    **dict.fromkeys(DATETIMES, "time"),
    **{name: family for name, (family, _, _) in SPANS.items()},
    "interval": "interval",
    "boolean": "boolean",
    "binary": "binary",
    "string": "string",
    "array": "array",
    "map": "map",
    "struct": "struct",
    "variant": "variant",
}
"""The types within which Spark widens (`AnsiTypeCoercion.findWiderTypeForTwo` of Spark 4.3), by their names."""

_WITH_TEXT = frozenset({"number", "time", "boolean", "binary", "string"})
"""The families that text is cast to."""


def are_incompatible(left: DataType | None, right: DataType | None) -> bool:
    """Returns whether Spark surely has no type that both go into; False where a type is not known."""
    if left is None or right is None or left == right:
        return False
    if isinstance(left, Array) and isinstance(right, Array):
        return are_incompatible(left.element, right.element)
    if isinstance(left, Map) and isinstance(right, Map):
        return are_incompatible(left.key, right.key) or are_incompatible(left.value, right.value)
    if isinstance(left, Struct) and isinstance(right, Struct):
        return _structs(left, right)
    families = {_FAMILIES.get(kind(left)), _FAMILIES.get(kind(right))}
    if None in families or len(families) == 1:
        return False
    return not ("string" in families and families <= _WITH_TEXT)


def _structs(left: Struct, right: Struct) -> bool:
    """Fields are put together by their place: their names may differ only where all types are the same already."""
    if len(left.fields) != len(right.fields):
        return True
    pairs = list(zip(left.fields, right.fields, strict=True))
    renamed = any(one.name.lower() != other.name.lower() for one, other in pairs)
    return any(
        are_incompatible(one.type, other.type) or (renamed and _are_different(one.type, other.type))
        for one, other in pairs
    )


def _are_different(left: DataType, right: DataType) -> bool:
    kinds = {kind(left), kind(right)}
    return len(kinds) == 2 and kinds <= _FAMILIES.keys()
