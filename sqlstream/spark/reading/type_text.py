"""Formats Spark's types as DDL, and checks whether data of one type can be read as another."""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DateType,
    DecimalType,
    FractionalType,
    IntegralType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sqlstream.compiler.sql.names import quote_identifier

TIMES = (DateType, TimestampType, TimestampNTZType)


def type_text(data_type: DataType) -> str:
    """Returns the type as DDL, with backquotes around field names that need them."""
    if isinstance(data_type, ArrayType):
        return f"array<{type_text(data_type.elementType)}>"
    if isinstance(data_type, MapType):
        return f"map<{type_text(data_type.keyType)},{type_text(data_type.valueType)}>"
    if isinstance(data_type, StructType):
        fields = (f"{quote_identifier(field.name)}:{type_text(field.dataType)}" for field in data_type)
        return f"struct<{','.join(fields)}>"
    return data_type.simpleString()


def text_fits(found: DataType, declared: DataType) -> bool:
    """Returns whether JSON or CSV with the inferred type `found` can be read as the type `declared`."""
    if isinstance(declared, StringType) or type_text(found) == type_text(declared):
        return True
    if isinstance(found, NumericType) and isinstance(declared, NumericType):
        return isinstance(found, IntegralType) or not isinstance(declared, IntegralType)
    if isinstance(found, TIMES):
        return isinstance(declared, TIMES)
    if isinstance(found, ArrayType) and isinstance(declared, ArrayType):
        return _text_fits_within(found.elementType, declared.elementType)
    if isinstance(found, StructType) and isinstance(declared, MapType):
        return all(_text_fits_within(field.dataType, declared.valueType) for field in found)
    return _fields_fit(found, declared)


def _fields_fit(found: DataType, declared: DataType) -> bool:
    if not isinstance(found, StructType) or not isinstance(declared, StructType):
        return False
    both = set(found.names) & set(declared.names)
    return all(_text_fits_within(found[name].dataType, declared[name].dataType) for name in both)


def _text_fits_within(found: DataType, declared: DataType) -> bool:
    """As `text_fits`, but nested text can be a time, because its values have not been checked."""
    return (isinstance(found, StringType) and isinstance(declared, TIMES)) or text_fits(found, declared)


def stored_fits(found: DataType, declared: DataType) -> bool:
    """Returns whether files with stored types can be read as the type `declared`: the same type, or a wider number."""
    if type_text(found) == type_text(declared):
        return True
    if isinstance(found, DecimalType) or isinstance(declared, DecimalType):
        return False
    sizes = ("tinyint", "smallint", "int", "bigint")
    names = found.simpleString(), declared.simpleString()
    if all(name in sizes for name in names):
        return sizes.index(names[0]) <= sizes.index(names[1])
    return isinstance(found, FractionalType) and names == ("float", "double")
