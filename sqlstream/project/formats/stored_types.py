"""Which types of a column in a file of ORC or Avro Spark reads rightly as which declared types.

ORC itself converts the values, so Spark reports no error for most other types: numbers that are too large become null,
fractions are cut, a number is a time, and a text that is no number is null. In Avro, Spark refuses most other types,
but reads every long as milliseconds to make a date of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from sqlstream.project.types.data_types import (
    MICROS,
    Array,
    DataType,
    Decimal,
    Field,
    Map,
    Primitive,
    Struct,
    type_name,
)

_Rule = Callable[[DataType, DataType], bool]

_DIGITS = {"boolean": 1, "tinyint": 3, "smallint": 5, "int": 10, "bigint": 19}
"""The digits of the largest value of a type that is a whole number in ORC."""

_EXACT = {
    "boolean": ("tinyint", "smallint", "int", "bigint", "float", "double"),
    "tinyint": ("smallint", "int", "bigint", "float", "double", "string"),
    "smallint": ("int", "bigint", "float", "double", "string"),
    "int": ("bigint", "double", "string"),
    "bigint": ("string",),
    "float": ("double",),
    "date": ("string",),
    "string": ("binary",),
}
"""The other types as which values are what a cast in SQL makes of them, and none is lost."""

_DOUBLE_DIGITS = 15
"""The digits of decimals of which each is another double."""

_TEXTS = ("string", "char", "varchar")


def misread_fields(
    file_format: str, stored: Sequence[Field], declared: Sequence[Field]
) -> Iterator[tuple[str, str, DataType, DataType]]:
    """Yields the declared columns that Spark would read wrongly from a file of `orc` or `avro` with the `stored`
    columns: the name of each, the path of the field within it, the type of the field in the file, and its declared one.
    A column that is not in the file is null.
    """
    reads = READS_RIGHTLY[file_format]
    by_name = {field.name.lower(): field for field in stored}
    # Spark finds columns by their position in files without names, which Hive once wrote
    is_unnamed = file_format == "orc" and bool(stored) and all(field.name.startswith("_col") for field in stored)
    for position, column in enumerate(declared):
        if is_unnamed:
            found = stored[position] if position < len(stored) else None
        else:
            found = by_name.get(column.name.lower())
        if found is not None:
            for path, was, now in _misread(column.name, found.type, column.type, reads):
                yield column.name, path, was, now


def _misread(path: str, stored: DataType, declared: DataType, reads: _Rule) -> Iterator[tuple[str, DataType, DataType]]:
    if isinstance(stored, Struct) and isinstance(declared, Struct):
        for field in declared.fields:
            found = stored.field(field.name)
            if found is not None:
                yield from _misread(f"{path}.{field.name}", found.type, field.type, reads)
    elif isinstance(stored, Array) and isinstance(declared, Array):
        yield from _misread(f"{path}.element", stored.element, declared.element, reads)
    elif isinstance(stored, Map) and isinstance(declared, Map):
        yield from _misread(f"{path}.key", stored.key, declared.key, reads)
        yield from _misread(f"{path}.value", stored.value, declared.value, reads)
    elif not reads(stored, declared):
        yield path, stored, declared


def _reads_avro(stored: DataType, declared: DataType) -> bool:
    """Returns whether Spark reads values of the type `stored`, from `file_type`, rightly as `declared`, or refuses to
    read them. It reads milliseconds as a date, also those of a long without a logical type.
    """
    is_micros = isinstance(stored, Primitive) and stored.parameters == MICROS
    return not (is_micros and type_name(declared) == "date")


def _reads_orc(stored: DataType, declared: DataType) -> bool:
    """Returns whether Spark reads all values of the type `stored` in an ORC file as they are, or as a cast to the type
    `declared` would convert them without loss. Types that sqlstream does not know are read as they are.
    """
    if isinstance(declared, Decimal):
        whole = declared.precision - declared.scale
        if isinstance(stored, Decimal):
            return whole >= stored.precision - stored.scale and declared.scale >= stored.scale
        return whole >= _DIGITS.get(type_name(stored), declared.precision + 1)
    if isinstance(stored, Primitive) and isinstance(declared, Primitive):
        was, now = ("string" if each.name in _TEXTS else each.name for each in (stored, declared))
        return was == now or now in _EXACT.get(was, ())
    if isinstance(stored, Decimal):
        return str(declared) == "double" and stored.precision <= _DOUBLE_DIGITS
    is_known = all(isinstance(each, Primitive | Decimal | Struct | Array | Map) for each in (stored, declared))
    return not is_known


READS_RIGHTLY: dict[str, _Rule] = {"orc": _reads_orc, "avro": _reads_avro}
"""For each format in which Spark would read some types wrongly without an error: whether it reads a type (the first
one) as a declared type.
"""
