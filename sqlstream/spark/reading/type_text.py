"""Formats Spark's types as DDL, and checks whether data of one type can be read as another, also on another day."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import coalesce, every, forall, lit
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FractionalType,
    IntegralType,
    LongType,
    MapType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sqlstream.compiler.sql.sql_text import quote_identifier

HAS_DAY = r"^[\s\x00-\x1f]*[+-]?\d{4}"
"""The beginning of a text with a day. Spark reads a text without one, such as 08:30 or T8, as a time of today."""

TIME_PATTERNS: tuple[tuple[DataType, str], ...] = (
    (TimestampType(), r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*$"),
    (DateType(), r"^\d{4}-\d\d-\d\d$"),
)
"""Patterns of text that is a time. Spark's own inference for JSON (`inferTimestamp`) takes a zip code for a year."""

TEXT_PATTERNS: tuple[tuple[DataType, str], ...] = (
    *TIME_PATTERNS,
    (LongType(), r"^-?(0|[1-9]\d{0,18})$"),
    (DoubleType(), r"^-?(0|[1-9]\d*)(\.\d+([eE][+-]?\d+)?|[eE][+-]?\d+)$"),
    (BooleanType(), r"^(?i:true|false)$"),
)
"""Patterns of text in CSV that is a time, a number or a boolean. A number that begins with a zero is a code."""

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
        return text_fits_within(found.elementType, declared.elementType)
    if isinstance(found, StructType) and isinstance(declared, MapType):
        return all(text_fits_within(field.dataType, declared.valueType) for field in found)
    return _fields_fit(found, declared)


def _fields_fit(found: DataType, declared: DataType) -> bool:
    if not isinstance(found, StructType) or not isinstance(declared, StructType):
        return False
    both = set(found.names) & set(declared.names)
    return all(text_fits_within(found[name].dataType, declared[name].dataType) for name in both)


def text_fits_within(found: DataType, declared: DataType) -> bool:
    """Returns whether nested values of the type `found` can be read as `declared`. Text can be a time there, because
    only the values of columns have been checked.
    """
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


def without_todays_times(schema: StructType, read: Callable[[StructType], DataFrame]) -> StructType:
    """Returns the columns that Spark has inferred from text, with text for those columns and fields of timestamps that
    have values without a day: they would be other values on another day. `read` reads the data with given columns.
    """
    texts = _with_text_for_times(schema)
    if texts == schema:
        return schema
    frame = read(texts)
    tests = [_all_have_days(frame[quote_identifier(each.name)], each.dataType) for each in schema]
    days = frame.agg(*(every(coalesce(test, lit(True))).alias(str(at)) for at, test in enumerate(tests))).collect()[0]
    return StructType(
        [each if has_days is not False else text for each, text, has_days in zip(schema, texts, days, strict=True)]
    )


def _with_text_for_times(schema: StructType) -> StructType:
    def text(data_type: DataType) -> DataType:
        if isinstance(data_type, ArrayType):
            return ArrayType(text(data_type.elementType))
        if isinstance(data_type, StructType):
            return _with_text_for_times(data_type)
        return StringType() if isinstance(data_type, TimestampType) else data_type

    return StructType([StructField(each.name, text(each.dataType)) for each in schema])


def _all_have_days(value: Column, data_type: DataType) -> Column:
    """Returns whether all texts of timestamps in a value with the inferred type `data_type` have a day."""
    if isinstance(data_type, ArrayType):
        return forall(value, lambda item: _all_have_days(item, data_type.elementType))
    if isinstance(data_type, StructType):
        parts = [_all_have_days(value[each.name], each.dataType) for each in data_type]
        return reduce(and_, (coalesce(part, lit(True)) for part in parts), lit(True))
    return coalesce(value.rlike(HAS_DAY), lit(True)) if isinstance(data_type, TimestampType) else lit(True)
