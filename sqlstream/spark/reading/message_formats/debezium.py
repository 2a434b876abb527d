"""Parses the change events of Debezium: JSON with the operation, and the row before and after it.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import and_, or_

from pyspark.sql import Column
from pyspark.sql.functions import (
    coalesce,
    date_add,
    exists,
    expr,
    floor,
    get_json_object,
    json_object_keys,
    lit,
    make_dt_interval,
    map_values,
    struct,
    timestamp_micros,
    when,
)
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sqlstream.project.messages.message_format import AFTER, BEFORE, DELETE, OPERATION, UPSERTS
from sqlstream.spark.reading.message_formats.parsers import PAYLOAD, JsonParser, other_case

TIME_UNIT = "timeUnit"
"""The option with the unit of numbers that are timestamps."""

UNKNOWN_VALUE, UNKNOWN = "unavailableValue", "__debezium_unavailable_value"
"""The option with the text that marks a value that is not known, and its default, as in Debezium's setting
`unavailable.value.placeholder`. PostgreSQL does not send large values that have not changed.
"""

_MICROSECONDS: Mapping[str, Callable[[Column], Column]] = {
    "millis": lambda number: number * 1000,
    "micros": lambda number: number,
    "nanos": lambda number: floor(number.cast("decimal(19, 0)") / 1000).cast("bigint"),  # a double would not be exact
}

_TIMES = (DateType, TimestampType, TimestampNTZType)


@dataclass(frozen=True)
class DebeziumParser:
    """Reads change events whose rows have the columns `row`, with or without the `schema` and `payload` around them.

    Debezium writes most times as numbers. Spark would read them as seconds, so times are read as text first.
    """

    row: StructType
    options: Mapping[str, str]

    def parse(self, data: Column) -> Column:
        """Returns the event, with its times as text."""
        return self._json.parse(data)

    def problem(self, data: Column, parsed: Column) -> Column:
        """Returns whether there is no event, a row is missing, a time cannot be read, or a value is not known.

        The values of a row after a change that are not known must not replace those that are. A row of nulls alone may
        have names in another letter case, as in an Oracle database.
        """
        operation, before, after = (self._json.field(parsed, name) for name in (OPERATION, BEFORE, AFTER))
        is_complete = (operation.isin(list(UPSERTS)) & after.isNotNull()) | ((operation == DELETE) & before.isNotNull())
        raws = [each for row in (before, after) for each in self._times(row)]
        unread = (
            when(raw.isNotNull() & self._time(raw, field).isNull(), f"{_TIME}: `{field.name}`") for raw, field in raws
        )
        # `is_complete` is null if there is no operation
        incomplete = when(~coalesce(is_complete, lit(False)), _EVENT)
        return coalesce(
            self._json.problem(data, parsed), incomplete, *unread, *self._unknown(after), self._other_case(data, after)
        )

    def _unknown(self, after: Column) -> Iterator[Column]:
        """Yields a problem for each column whose value is or contains the placeholder of values that are not known."""
        placeholder = self.options.get(UNKNOWN_VALUE, UNKNOWN)
        for each in self.row if placeholder else ():
            found = _has_placeholder(after.getField(each.name), each.dataType, placeholder)
            if found is not None:
                yield when(found, f"has no value for `{each.name}`, only `{placeholder}`")

    def _other_case(self, data: Column, row: Column) -> Column:
        text = data.cast("string")
        inner = coalesce(get_json_object(text, f"$.{PAYLOAD}.{AFTER}"), get_json_object(text, f"$.{AFTER}"))
        is_empty = reduce(and_, (row.getField(name).isNull() for name in self.row.names))
        return when(row.isNotNull() & is_empty, other_case(json_object_keys(inner), self.row.names))

    def field(self, parsed: Column, name: str) -> Column:
        """Returns the operation, or a row in its declared types; the row of a deletion is the one before it."""
        if name == OPERATION:
            return self._json.field(parsed, name)
        if name in (BEFORE, AFTER):
            return self._typed(self._json.field(parsed, name))
        before, after = (self._json.field(parsed, each) for each in (BEFORE, AFTER))
        is_deletion = self._json.field(parsed, OPERATION) == DELETE
        return self._typed(when(is_deletion, before).otherwise(after))

    def result(self, parsed: Column) -> Column:
        """Returns the event."""
        return parsed

    @property
    def _json(self) -> JsonParser:
        times_as_text = StructType(
            [
                StructField(each.name, StringType() if isinstance(each.dataType, _TIMES) else each.dataType)
                for each in self.row
            ]
        )
        fields = {OPERATION: StringType(), BEFORE: times_as_text, AFTER: times_as_text}
        options = {name: value for name, value in self.options.items() if name not in (TIME_UNIT, UNKNOWN_VALUE)}
        event = StructType([StructField(name, kind) for name, kind in fields.items()])
        return JsonParser(event, options, is_wrapped=True)

    def _typed(self, raw: Column) -> Column:
        times = {field.name: self._time(text, field) for text, field in self._times(raw)}
        columns = [times.get(name, raw.getField(name)).alias(name) for name in self.row.names]
        return when(raw.isNotNull(), struct(*columns))

    def _times(self, raw: Column) -> Iterator[tuple[Column, StructField]]:
        """Yields the text of each time in a row, and its declared column."""
        return ((raw.getField(each.name), each) for each in self.row if isinstance(each.dataType, _TIMES))

    def _time(self, text: Column, field: StructField) -> Column:
        """Returns a time from a number since 1970 or from ISO text; null if it cannot be read."""
        number, kind = text.try_cast("bigint"), field.dataType
        if isinstance(kind, DateType):
            # the number counts days (io.debezium.time.Date)
            days = date_add(lit("1970-01-01").cast("date"), number.cast("int"))
            return when(number.isNotNull(), days).otherwise(text.try_cast("date"))
        unit = _MICROSECONDS.get(self.options.get(TIME_UNIT, "").lower())
        if unit is None:
            return when(number.isNull(), text.try_cast(kind))
        micros = unit(number)
        seconds = make_dt_interval(secs=micros.cast("decimal(20,0)") / lit(1_000_000))
        since = expr("timestamp_ntz'1970-01-01'") + seconds
        found = timestamp_micros(micros) if isinstance(kind, TimestampType) else since
        return when(number.isNotNull(), found).otherwise(text.try_cast(kind))


def _has_placeholder(value: Column, kind: DataType, placeholder: str) -> Column | None:
    """Returns whether a value is the placeholder or contains it; None if no value of its type can."""
    if isinstance(kind, StringType):
        return value == placeholder
    if isinstance(kind, BinaryType):
        return value == lit(bytearray(placeholder.encode()))
    if isinstance(kind, ArrayType):
        return _any_has(value, kind.elementType, placeholder)
    if isinstance(kind, MapType):
        return _any_has(map_values(value), kind.valueType, placeholder)
    if isinstance(kind, StructType):
        parts = (_has_placeholder(value.getField(each.name), each.dataType, placeholder) for each in kind)
        found = [part for part in parts if part is not None]
        return reduce(or_, found) if found else None
    return None


def _any_has(values: Column, kind: DataType, placeholder: str) -> Column | None:
    # asks only whether a value of this type can have it
    if _has_placeholder(lit(None), kind, placeholder) is None:
        return None

    def has(value: Column) -> Column:
        found = _has_placeholder(value, kind, placeholder)
        return lit(False) if found is None else coalesce(found, lit(False))

    return exists(values, has)


_EVENT = "is not a change event of Debezium with the rows of its operation"
_TIME = "has a time that is neither ISO text nor a number in the timeUnit of value_options"
