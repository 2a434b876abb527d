"""The types of fields that no source declares, as found in their values: read, merged, and added to declared columns.

A found type is that of Spark's function `schema_of_variant`. It can have parts whose type is not known yet: `void` for
values that are all null, and `variant` for values of several kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from sqlstream.project.types.data_types import Array, DataType, Decimal, Field, Map, Primitive, Struct, columns_ddl
from sqlstream.project.types.ddl import TypeSyntaxError, parse_type

VOID, MIXED, STRING = Primitive("void"), Primitive("variant"), Primitive("string")
DOUBLE, DATE, TIMESTAMP = Primitive("double"), Primitive("date"), Primitive("timestamp")

WHOLE = Decimal(38, 0)
"""The type of whole numbers that a bigint cannot hold."""

_OBJECT = re.compile(r"`(?:[^`]|``)*`|OBJECT<")


def read_found_type(text: str) -> Struct | None:
    """Returns the fields of objects, from the text of `schema_of_variant`; None for any other type."""
    ddl = _OBJECT.sub(lambda found: "STRUCT<" if found.group() == "OBJECT<" else found.group(), text)
    try:
        found = parse_type(ddl)
    except TypeSyntaxError:
        return None
    return found if isinstance(found, Struct) else None


def merge_found(one: DataType, other: DataType) -> DataType:
    """Returns the type of values of which some have the found type `one`, and some `other`. Fields are sorted by
    name, as Spark has them.
    """
    if one == other or other == VOID:
        return one
    if one == VOID:
        return other
    if isinstance(one, Struct) and isinstance(other, Struct):
        known = {field.name: field for field in one.fields}
        for field in other.fields:
            before = known.get(field.name)
            known[field.name] = field if before is None else replace(field, type=merge_found(before.type, field.type))
        return Struct(tuple(sorted(known.values(), key=lambda field: field.name)))
    if isinstance(one, Array) and isinstance(other, Array):
        return Array(merge_found(one.element, other.element))
    numbers = {_number(one), _number(other)}
    if None not in numbers:
        return DOUBLE if DOUBLE in numbers else WHOLE if WHOLE in numbers else one
    if {one, other} <= {DATE, TIMESTAMP, STRING}:
        return STRING if STRING in (one, other) else TIMESTAMP
    return MIXED


def merge_all(kinds: Iterable[DataType]) -> DataType:
    """Returns the type of values of the found types `kinds`."""
    nothing: DataType = VOID
    return reduce(merge_found, kinds, nothing)


def _number(kind: DataType) -> DataType | None:
    """Returns the type among bigint, decimal(38,0) and double that holds a found number; None for another type."""
    if isinstance(kind, Decimal):
        return DOUBLE if kind.scale else WHOLE
    if isinstance(kind, Primitive) and kind.name in ("tinyint", "smallint", "int", "bigint"):
        return Primitive("bigint")
    return DOUBLE if isinstance(kind, Primitive) and kind.name in ("float", "double") else None


@dataclass(frozen=True)
class NewColumns:
    """How declared columns change: `added` are the new ones, `changed` those that get more fields, with all of them.
    `named` are all new fields with their types: `color string`, `item.lot bigint`. `unclear` are the paths of those
    without a type: all values are null, or the name cannot be declared.
    """

    added: tuple[Field, ...] = ()
    changed: tuple[Field, ...] = ()
    named: tuple[str, ...] = ()
    unclear: tuple[str, ...] = ()


def new_columns(declared: Sequence[Field], found: Struct, taken: Iterable[str] = ()) -> NewColumns:
    """Returns how columns change so that they have the `found` fields. `taken` are other names that columns cannot
    have.
    """
    extension = _Extension()
    inside = {field.name: field.type for field in found.fields}
    changed = []
    for each in declared:
        kind = extension.extended(each.type, inside.pop(each.name, VOID), each.name)
        if kind != each.type:
            changed.append(replace(each, type=kind))
    added = extension.added(inside, [*(each.name for each in declared), *taken], "")
    return NewColumns(added, tuple(changed), tuple(extension.named), tuple(extension.unclear))


class _Extension:
    """Adds found fields to declared types, and keeps their names."""

    def __init__(self) -> None:
        self.named: list[str] = []
        self.unclear: list[str] = []

    def added(self, found: Mapping[str, DataType], known: Iterable[str], prefix: str) -> tuple[Field, ...]:
        """Returns the found fields with the types to declare. Spark does not distinguish names by letter case."""
        names, added = {name.casefold() for name in known}, []
        for name, found_type in found.items():
            kind = declared_type(found_type)
            if kind is None or not name.strip() or name.casefold() in names:
                self.unclear.append(f"{prefix}{name}")
                continue
            names.add(name.casefold())
            added.append(Field(name, kind))
            self.named.append(f"{prefix}{columns_ddl([added[-1]], as_written=True)}")
        return tuple(added)

    def extended(self, declared: DataType, found: DataType, path: str) -> DataType:
        """Returns a declared type with the fields that were found within its values."""
        if isinstance(declared, Struct) and isinstance(found, Struct):
            inside = {field.name: field.type for field in found.fields}
            fields = tuple(
                replace(each, type=self.extended(each.type, inside.pop(each.name, VOID), f"{path}.{each.name}"))
                for each in declared.fields
            )
            return Struct((*fields, *self.added(inside, [field.name for field in fields], f"{path}.")))
        if isinstance(declared, Array) and isinstance(found, Array):
            return replace(declared, element=self.extended(declared.element, found.element, f"{path}[]"))
        if isinstance(declared, Map) and isinstance(found, Struct):
            value = merge_all(field.type for field in found.fields)
            return replace(declared, value=self.extended(declared.value, value, f"{path}[]"))
        return declared


def declared_type(found: DataType) -> DataType | None:
    """Returns the type to declare for values of a found type; None if all are null. Values of several kinds, and
    objects whose fields cannot be declared, are strings, in which Spark reads everything.
    """
    if found == VOID:
        return None
    if isinstance(found, Array):
        element = declared_type(found.element)
        return None if element is None else Array(element)
    if isinstance(found, Struct):
        known = [replace(field, type=kind) for field in found.fields if (kind := declared_type(field.type)) is not None]
        names = {field.name.casefold() for field in found.fields if field.name.strip()}
        return Struct(tuple(known)) if known and len(names) == len(found.fields) else STRING
    number = _number(found)
    return number or (STRING if found == MIXED else found)
