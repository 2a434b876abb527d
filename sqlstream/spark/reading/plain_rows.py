"""Converts rows of a DataFrame to plain values."""

from __future__ import annotations

import json
from decimal import Decimal

from pyspark.sql import DataFrame
from pyspark.sql.functions import struct, to_json
from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.formats.option_types import is_fixed_zone
from sqlstream.spark.jvm.session import TIME_ZONE
from sqlstream.state.shown_rows import ShownColumn

JSON_OPTIONS = {"ignoreNullFields": "false"}
"""The options of `to_json`."""


def columns_of(frame: DataFrame) -> tuple[ShownColumn, ...]:
    """Returns the columns of `frame` with their types."""
    return tuple(ShownColumn(name, data_type) for name, data_type in frame.dtypes)


def first_rows(frame: DataFrame, limit: int) -> tuple[tuple[object, ...], ...]:
    """Returns at most `limit` rows of `frame` as JSON values. Raises: Spark's errors.

    Spark formats the values, because Python has no year 10000, no interval of months, and another time zone. Times are
    cast to text, because `to_json` writes only milliseconds; see `with_exact_times`.
    """
    return all_rows(frame.limit(limit))


def all_rows(frame: DataFrame) -> tuple[tuple[object, ...], ...]:
    """Returns the rows of `frame` as `first_rows` does. Raises: Spark's errors."""
    if not frame.columns:
        return tuple(() for _ in frame.collect())
    return tuple(read_row(text[0]) for text in json_texts(frame).collect())


def json_texts(frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame` as one column of JSON, for `read_row`. `frame` must have columns."""
    return with_exact_times(frame).select(to_json(struct("*").cast(readable_schema(frame.schema)), JSON_OPTIONS))


def with_exact_times(frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame`, with text for those times that the session's time zone cannot express: when clocks
    go back, a local time occurs twice. They are in UTC, such as `2024-10-27 01:30:00Z`. Columns are named by number.
    """
    session, schema = frame.sparkSession, frame.schema
    if is_fixed_zone(session.conf.get(TIME_ZONE) or "UTC") or not any(_has_times(each.dataType) for each in schema):
        return frame
    numbered = frame.toDF(*(str(at) for at in range(len(schema))))
    return numbered.selectExpr(
        *(f"{_exact_text(f'`{at}`', each.dataType)} as `{at}`" for at, each in enumerate(schema))
    )


def _has_times(data_type: DataType) -> bool:
    if isinstance(data_type, ArrayType):
        return _has_times(data_type.elementType)
    if isinstance(data_type, MapType):
        return _has_times(data_type.keyType) or _has_times(data_type.valueType)
    if isinstance(data_type, StructType):
        return any(_has_times(each.dataType) for each in data_type)
    return isinstance(data_type, TimestampType)


def _exact_text(value: str, data_type: DataType, depth: int = 0) -> str:
    """Returns SQL for `value`, an expression, with exact text for the times in it."""
    if not _has_times(data_type):
        return value
    item = f"item{depth}"  # a lambda within a lambda needs another name
    if isinstance(data_type, ArrayType):
        return f"transform({value}, {item} -> {_exact_text(item, data_type.elementType, depth + 1)})"
    if isinstance(data_type, MapType):
        key = _exact_text(f"{item}.key", data_type.keyType, depth + 1)
        text = _exact_text(f"{item}.value", data_type.valueType, depth + 1)
        return f"map_from_entries(transform(map_entries({value}), {item} -> struct({key}, {text})))"
    if isinstance(data_type, StructType):
        names = [quote_identifier(each.name) for each in data_type]
        parts = (
            f"{_exact_text(f'{value}.{name}', each.dataType, depth)} as {name}"
            for name, each in zip(names, data_type, strict=True)
        )
        return f"if({value} is null, null, struct({', '.join(parts)}))"
    utc = f"timestampadd(MICROSECOND, unix_micros({value}), timestamp_ntz'1970-01-01 00:00:00')"
    local = f"cast({value} as string)"
    return f"if(try_cast({local} as timestamp) <=> {value}, {local}, concat(cast({utc} as string), 'Z'))"


def readable_schema(schema: StructType) -> StructType:
    """Returns the type to which rows of `schema` are cast before they become JSON: one field for each column, named by
    its number, because two columns can have the same name.
    """
    return StructType([StructField(str(at), _readable(each.dataType)) for at, each in enumerate(schema)])


def read_row(text: str) -> tuple[object, ...]:
    """Returns the values of a row of `json_texts`, in the order of its columns."""
    return tuple(json.loads(text, parse_float=Decimal).values())  # a float would round decimals


def _readable(data_type: DataType) -> DataType:
    """Returns the type with text for each time and each key of a map, at any depth."""
    if isinstance(data_type, TimestampType | TimestampNTZType):
        return StringType()
    if isinstance(data_type, ArrayType):
        return ArrayType(_readable(data_type.elementType), data_type.containsNull)
    if isinstance(data_type, MapType):
        return MapType(StringType(), _readable(data_type.valueType), data_type.valueContainsNull)
    if isinstance(data_type, StructType):
        return StructType([StructField(each.name, _readable(each.dataType), each.nullable) for each in data_type])
    return data_type
