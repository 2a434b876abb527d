"""Which types of columns a sink writes, by its format, as Spark 4.3 said when each was written into each.

`tests/spark/test_sink_types.py` asks the installed Spark again.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.project.formats.formats import format_of
from sqlstream.project.types.types import Array, DataType, Decimal, Map, Primitive, Struct

_NO_FOLDER_NAMES = frozenset({"void", "variant", "interval", "array", "map", "struct", "geometry", "geography"})

_PARTS = {Array: "array", Map: "map", Struct: "struct", Decimal: "decimal"}


def unwritten_reason(format_name: str, type_: DataType) -> str | None:
    """Returns why a format's files cannot hold a column of a type; None where they can, or it is not known."""
    if any(name == "time" for name in map(_name, _within(type_))):
        return f"its type is {type_}, and Spark 4.3 does not start a query with a TIME column"
    facts = format_of(format_name)
    if facts.holds_one_string and _name(type_) not in ("string", ""):
        return f"its type is {type_}, but a text file holds only strings"
    if any(_name(part) in facts.unwritten_types for part in _within(type_)):
        return f"its type is {type_}, which Spark cannot write as {format_name}"
    return _unfit_struct(type_) if facts.needs_fields else None


def unfit_partition(type_: DataType) -> bool:
    """Returns whether values of a type cannot stand in the names of folders (INVALID_PARTITION_COLUMN_DATA_TYPE)."""
    collated = isinstance(type_, Primitive) and type_.collation not in (None, "UTF8_BINARY")
    return collated or _name(type_) in _NO_FOLDER_NAMES


def _unfit_struct(type_: DataType) -> str | None:
    """Why Parquet's own schema has no room for a struct: it is empty, or has two fields of one name and other types."""
    for part in _within(type_):
        if not isinstance(part, Struct):
            continue
        if not part.fields:
            return f"its type is {type_}, and Parquet has no struct without fields"
        types: dict[str, DataType] = {}
        for field in part.fields:
            if types.setdefault(field.name, field.type) != field.type:
                return f"it has two fields `{field.name}` with different types, which Parquet treats as one"
    return None


def _within(type_: DataType) -> Iterator[DataType]:
    """Gives a type and all within it."""
    yield type_
    parts: list[DataType] = []
    if isinstance(type_, Array):
        parts = [type_.element]
    elif isinstance(type_, Map):
        parts = [type_.key, type_.value]
    elif isinstance(type_, Struct):
        parts = [field.type for field in type_.fields]
    for part in parts:
        yield from _within(part)


def _name(type_: DataType) -> str:
    return type_.name if isinstance(type_, Primitive) else _PARTS.get(type(type_), "")
