"""Parses the change events of Debezium: JSON with the operation, and the row before and after it.

https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-events
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql.functions import (
    coalesce,
    date_add,
    expr,
    floor,
    lit,
    make_dt_interval,
    struct,
    timestamp_micros,
    when,
)
from pyspark.sql.types import DateType, StringType, StructField, StructType, TimestampNTZType, TimestampType

from sqlstream.project.messages.message_format import AFTER, BEFORE, DELETE, OPERATION, UPSERTS
from sqlstream.spark.reading.message_formats.parsers import JsonParser

TIME_UNIT = "timeUnit"
"""The option with the unit of numbers that are timestamps."""

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
        """Returns whether there is no event, a row is missing, or a time cannot be read."""
        operation, before, after = (self._json.field(parsed, name) for name in (OPERATION, BEFORE, AFTER))
        is_complete = (operation.isin(list(UPSERTS)) & after.isNotNull()) | ((operation == DELETE) & before.isNotNull())
        raws = [each for row in (before, after) for each in self._times(row)]
        unread = (when(raw.isNotNull() & self._time(raw, field).isNull(), _TIME) for raw, field in raws)
        incomplete = when(~coalesce(is_complete, lit(False)), _EVENT)
        return coalesce(self._json.problem(data, parsed), incomplete, *unread)

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
        options = {name: value for name, value in self.options.items() if name != TIME_UNIT}
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


_EVENT = "is not a change event of Debezium with the rows of its operation"
_TIME = "has a time that is neither ISO text nor a number in the timeUnit of value_options"
