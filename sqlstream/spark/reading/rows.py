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

from sqlstream.state.results.rows import ShownColumn

JSON_OPTIONS = {"ignoreNullFields": "false"}
"""The options of `to_json`."""


def columns_of(frame: DataFrame) -> tuple[ShownColumn, ...]:
    """Returns the columns of `frame` with their types."""
    return tuple(ShownColumn(name, data_type) for name, data_type in frame.dtypes)


def first_rows(frame: DataFrame, limit: int) -> tuple[tuple[object, ...], ...]:
    """Returns at most `limit` rows of `frame` as JSON values. Raises: Spark's errors.

    Spark formats the values, because Python has no year 10000, no interval of months, and another time zone. Times are
    cast to text, because `to_json` writes only milliseconds.
    """
    return all_rows(frame.limit(limit))


def all_rows(frame: DataFrame) -> tuple[tuple[object, ...], ...]:
    """Returns the rows of `frame` as `first_rows` does. Raises: Spark's errors."""
    if not frame.columns:
        return tuple(() for _ in frame.collect())
    return tuple(read_row(text[0]) for text in json_texts(frame).collect())


def json_texts(frame: DataFrame) -> DataFrame:
    """Returns the rows of `frame` as one column of JSON, for `read_row`. `frame` must have columns."""
    return frame.select(to_json(struct("*").cast(readable_schema(frame.schema)), JSON_OPTIONS))


def readable_schema(schema: StructType) -> StructType:
    """Returns the type to which rows of `schema` are cast before they become JSON: one field for each column, named by
    its number, because two columns can have the same name.
    """
    return StructType([StructField(str(at), _readable(each.dataType)) for at, each in enumerate(schema)])


def read_row(text: str) -> tuple[object, ...]:
    """Returns the values of a row of `json_texts`, in the order of its columns."""
    return tuple(json.loads(text, parse_float=Decimal).values())


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
