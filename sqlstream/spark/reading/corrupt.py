"""Separates the records that a parser cannot read, or that have wrong times or lack values, from the others.

Spark does not parse columns that a query does not read, so it would miss errors in them; `count(*)` parses nothing.
Therefore a condition on all columns separates the rows. Spark's optimizer simplifies most such conditions
(`size(array(struct(*))) = 1` becomes true), but not array functions with a lambda.

Spark reads a number in a timestamp column of JSON as seconds. Milliseconds become a time in the year 58133, and
microseconds overflow, some of them to a time in the calendar. So timestamps are read as text, and a number is a time
only if the source declares its `timestamp_unit`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import uuid4

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, Observation, Row, SparkSession
from pyspark.sql.functions import abs as abs_
from pyspark.sql.functions import (
    coalesce,
    col,
    concat,
    count_if,
    current_timestamp,
    expr,
    from_json,
    get,
    length,
    lit,
    map_values,
    raise_error,
    spark_partition_id,
    struct,
    substring,
    timestamp_micros,
    to_json,
    transform,
    transform_values,
    unix_seconds,
    when,
)
from pyspark.sql.functions import filter as filter_
from pyspark.sql.types import ArrayType, DataType, MapType, StringType, StructField, StructType, TimestampType

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.declarations.on_corrupt import (
    CORRUPT_OPTION,
    captures_corrupt,
    event_column,
    option_of,
    required_names,
)
from sqlstream.project.formats.formats import format_of
from sqlstream.project.values import SourceTable
from sqlstream.state.runs.progress import DROPPED_STATIC, NEW_FIELDS
from sqlstream.state.signature.source_checks import CORRUPT, DECLARED, GOOD

DEFAULT_NAME = "spark.sql.columnNameOfCorruptRecord"
"""The setting with the default name of the column of corrupt records."""

LEGACY_XML = "useLegacyXMLParser"
"""Selects the XML parser that returns a corrupt element as its own record and continues after it. The other parser
returns the whole file as one record and skips its rest (tested on 4.3).
"""

FAILING = {"mode": "FAILFAST"}
"""The options of a reader that fails at the first corrupt record."""

OBSERVATION_SECONDS = 1.0
"""Time after a write for Spark to report an observation. Spark never reports it if it has removed the reader from the
plan (`where false`).
"""

POLL_SECONDS = 0.01

JSON = "json"

MICROSECONDS = {"seconds": 1_000_000, "milliseconds": 1_000, "microseconds": 1}
"""The microseconds in each unit of `timestamp_unit`."""

FIRST_SECOND, LAST_SECOND = -62_135_769_600, 253_402_473_599
"""The years 1 to 9999 in all time zones, as seconds since 1970: texts such as 9999-12-31 are inside."""

Test = Callable[[Column, DataType, str], Column]
"""Returns why a value, which was declared with that type in the column with that name, is wrong; null if it is good."""

RawType = Callable[[DataType], DataType | None]
"""Returns the type with which a parser reads a declared type that sqlstream converts itself, None for any other one."""

NEW_FIELD = "sqlstream finds a new field:"
"""The start of the error that a query raises at a record with fields that its source does not declare. Lines with the
source, the URI of its file or its place in Kafka, and the names of the fields follow.
"""

CORRUPT_RECORD = "sqlstream finds a corrupt record:"
"""The start of the error that a query raises at a record that Spark could read, or that sqlstream reads itself. Lines
with the source, the URI of its file (empty: none) and the reason follow.
"""


def corrupt_policy(table: SourceTable, session: SparkSession) -> str | None:
    """Returns the policy for corrupt records of `table`: `fail`, `drop` or `quarantine`. None if its format has no
    corrupt records, or if options or schema already handle them.
    """
    if table.messages is not None:
        return table.on_corrupt or "fail"
    if not format_of(table.format).is_parsed or option_of(table, "mode") is not None:
        return None
    if table.on_corrupt is not None:
        return table.on_corrupt
    return None if captures_corrupt(table, str(session.conf.get(DEFAULT_NAME))) else "fail"


def permissive_options(table: SourceTable) -> dict[str, str]:
    """Returns the options for a reader of `table` that also returns corrupt records."""
    options = {"mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}
    if table.format == "xml" and option_of(table, LEGACY_XML) is None:
        options[LEGACY_XML] = "true"
    return options


def with_corrupt(schema: StructType) -> StructType:
    """Returns `schema` with the column for corrupt records."""
    return StructType([*schema.fields, StructField(CORRUPT, StringType())])


@dataclass(frozen=True)
class Counters:
    """Under which names Spark counts the corrupt records that a reader drops, and the records with new fields. None: it
    does not count them.
    """

    dropped: str | Observation | None = None
    new_fields: str | Observation | None = None


def good_rows(
    frame: DataFrame, columns: Sequence[str], reason: Column | None, metric: str | Observation | None
) -> DataFrame:
    """Returns the parsed rows of `frame`, still with the column for corrupt records. `reason` is why a row that Spark
    can parse is corrupt, null for the others.

    With a `metric`, Spark counts the corrupt rows as `rows` under that name.
    """
    unread = col(CORRUPT).isNotNull()
    if metric is not None:
        # before the filter, which removes what this counts
        frame = frame.observe(metric, count_if(unread if reason is None else unread | reason.isNotNull()).alias("rows"))
    rows = frame.filter(_condition(columns, "isnull"))
    return rows if reason is None else rows.filter(is_good(reason))


def is_good(reason: Column) -> Column:
    """Returns whether there is no reason why a row is corrupt, in a form that signatures of state leave out."""
    return coalesce(reason, lit(GOOD)) == lit(GOOD)


def fails_at(is_wrong: Column, error: Column) -> Column:
    """Returns a condition that keeps all rows but the wrong ones, at which the query fails with the text `error`.

    Spark does not move the conditions of models below it: the query would not fail at a wrong row that they leave out.
    """
    return once(is_good(when(is_wrong, raise_error(error).cast("string"))))


def once(value: Column) -> Column:
    """Returns a value that depends on the number of the partition. So Spark neither computes it again for each use, nor
    moves conditions past it.
    """
    return when(spark_partition_id() >= 0, value)


def corrupt_rows(frame: DataFrame, columns: Sequence[str], reason: Column | None, format_name: str) -> DataFrame:
    """Returns the corrupt rows of `frame`, a reader of a format, with the columns of a table of corrupt records. A row
    that Spark can parse has lost its text, so it becomes JSON.
    """
    unread = lit(f"the record cannot be read as {format_name} with the declared columns")
    is_corrupt, text = expr(_condition(columns, "isnotnull")), col(CORRUPT)
    if reason is not None:
        is_corrupt |= reason.isNotNull()
        text = coalesce(text, to_json(struct(*map(quote_identifier, columns))))
    return frame.filter(is_corrupt).select(
        text.alias("record"),
        _of_file(frame, "file_path").alias("file"),
        (unread if reason is None else coalesce(when(col(CORRUPT).isNotNull(), unread), reason)).alias("reason"),
        current_timestamp().alias("quarantined_at"),
    )


def _of_file(frame: DataFrame, name: str) -> Column:
    """Returns what Spark knows about the file of each row, also if the file has a column `_metadata`."""
    return frame.metadataColumn("_metadata").getField(name)


def path_of_file(frame: DataFrame) -> Column:
    """Returns the URI of the file of each row, empty if Spark does not know it."""
    try:
        return _of_file(frame, "file_path")
    except AnalysisException:
        return lit("")  # the static reader of a format that spark.sql.sources.useV1SourceList does not have


def _condition(columns: Sequence[str], test: str) -> str:
    row = ", ".join(map(quote_identifier, columns))
    return f"exists(array(struct({row})), row -> {test}({CORRUPT}))"


def new_counters(table: SourceTable, *, drops: bool) -> Counters:
    """Returns new counters of a static table; `drops`: it drops corrupt records.

    A stream that reads the table reports the counters with each batch.
    """
    number = uuid4().hex
    return Counters(
        Observation(DROPPED_STATIC + number) if drops else None,
        Observation(f"{NEW_FIELDS}{table.full_name}/{number}") if table.schema_changes is not None else None,
    )


def observed_counts(observations: Iterable[Observation]) -> dict[str, dict[str, object]]:
    """Returns the counts of the write that has just ended, in the format of a stream's progress."""
    until = time.monotonic() + OBSERVATION_SECONDS
    complete = [observation for observation in observations if _wait_for(observation, until)]
    # as in the progress of a stream, which is JSON
    return {
        str(each._name): {name: _as_json(value) for name, value in each.get.items()}  # noqa: SLF001
        for each in complete
    }


def _as_json(value: object) -> object:
    if isinstance(value, list):
        return [_as_json(item) for item in value]
    return value.asDict(recursive=True) if isinstance(value, Row) else value


def _wait_for(observation: Observation, until: float) -> bool:
    """Waits for the observation, and returns whether it has completed; `observation.get` would wait forever."""
    java = getattr(observation, "_jo", None)  # a private field; without it the count is left out
    while java is not None and not java.future().isCompleted():
        if time.monotonic() >= until:
            return False
        time.sleep(POLL_SECONDS)
    return java is not None


_NUMBER = r"^[+-]?[0-9]+([.][0-9]+)?([eE][+-]?[0-9]+)?$"

_FORMAT_OPTIONS = frozenset({"timestampformat", "timezone", "locale", "enabledatetimeparsingfallback"})

_WIDE = "decimal(38,9)"
"""A type for numbers of a unit that loses no nanoseconds."""


@dataclass(frozen=True)
class ColumnChecks:
    """How the columns of `table` that a parser returns are checked, and its timestamps read, in `session`. `options`
    are those of the parser, with all secrets.
    """

    table: SourceTable
    options: Mapping[str, str]
    session: SparkSession

    @property
    def is_json(self) -> bool:
        """Whether the records are JSON, in which a timestamp can be a number."""
        messages = self.table.messages
        return messages.value_format == JSON if messages is not None else self.table.format == JSON

    @cached_property
    def _reads_text(self) -> bool:
        """Whether timestamps are read as text. Options can give all corrupt records to the user; then Spark's own rules
        hold.
        """
        has_policy = corrupt_policy(self.table, self.session) is not None
        return self.is_json and (self.table.timestamp_unit is not None or has_policy)

    def parsed(self, schema: StructType) -> StructType:
        """Returns the types with which a parser reads columns with the types of `schema`."""
        if not self._reads_text:
            return schema
        text = raw_struct(schema, is_timestamp)
        if self.table.timestamp_unit is None:
            for each, declared in zip(text, schema, strict=True):
                each.metadata = (
                    {DECLARED: declared.dataType.json()} if has_leaves(declared.dataType, is_timestamp) else {}
                )
        return text

    def typed(self, value: Column, kind: DataType) -> Column:
        """Returns a parsed column with its declared type."""
        if not self._reads_text or not has_leaves(kind, is_timestamp):
            return value
        return map_leaves(value, kind, is_timestamp, lambda text, _kind: self._read(text))

    def problems(self, columns: Sequence[tuple[str, Column, DataType]], frame: DataFrame) -> list[Column]:
        """Returns why parsed columns of `frame`, given with name and declared type, are corrupt; each is null for good
        ones.
        """
        found: list[Column] = []
        event = event_column(self.table)
        required = required_names(self.table)
        for name, value, kind in columns:
            if name.lower() in required:
                found.append(when(value.isNull(), f"`{name}` has no value, and is required"))
            found += leaf_reasons(value, kind, name, is_timestamp, self._wrong) if self._reads_text else []
            if event is not None and name.lower() == event.lower() and isinstance(kind, TimestampType):
                found.append(self._ahead(self.typed(value, kind), name, frame))
        return found

    def checked(self, schema: StructType, frame: DataFrame) -> list[Column]:
        """Returns the columns of the reader `frame` with the columns of `schema`, each with its declared type. A query
        that reads a wrong one fails, with an error that `read_corrupt_record` recognizes.
        """
        found = []
        start = concat(lit(f"{CORRUPT_RECORD}\n{self.table.full_name}\n"), path_of_file(frame), lit("\n"))
        for each in schema:
            value = col(quote_identifier(each.name))
            reasons = self.problems([(each.name, value, each.dataType)], frame)
            typed = self.typed(value, each.dataType)
            if reasons:
                reason = coalesce(*reasons)
                error = raise_error(concat(start, reason)).cast(each.dataType)
                typed = when(reason.isNotNull(), error).otherwise(typed)
            found.append(typed.alias(each.name))
        return found

    def _read(self, text: Column) -> Column:
        """Returns the time that a text, or a number of the declared unit, is; null if it is none in the calendar."""
        if self.table.timestamp_unit is None:
            return self._of_text(text)
        unit = MICROSECONDS[self.table.timestamp_unit]
        number = when(text.rlike(_NUMBER), text.try_cast(_WIDE))
        first, last = (lit(second * (1_000_000 // unit)) for second in (FIRST_SECOND, LAST_SECOND))
        inside = number.between(first, last)
        micros = when(inside, number) * lit(unit)  # the product of a larger number has too many digits
        of_number = when(inside, timestamp_micros(micros.cast("bigint")))
        return when(text.rlike(_NUMBER), of_number).otherwise(self._of_text(text))

    def _of_text(self, text: Column) -> Column:
        """Returns the time that Spark's parser of JSON finds in a text, null for none. Without options it is that of a
        cast, which is faster than the parser.
        """
        if self.table.timestamp_unit is None and not self._has_own_format:
            return text.try_cast(TimestampType())
        alone = StructType([StructField("time", TimestampType())])
        options = {**self.options, "mode": "PERMISSIVE"}
        return from_json(to_json(struct(text.alias("time"))), alone, options).getField("time")

    @cached_property
    def _has_own_format(self) -> bool:
        """Whether an option or a setting changes how Spark's parser of JSON reads a text as a time."""
        names = {name.lower() for name in self.options}
        is_legacy = str(self.session.conf.get("spark.sql.legacy.timeParserPolicy")).upper() != "CORRECTED"
        return is_legacy or not names.isdisjoint(_FORMAT_OPTIONS)

    def _wrong(self, value: Column, _kind: DataType, name: str) -> Column:
        """Returns why the text of a timestamp is wrong, null for a time."""
        unit, time, shown = self.table.timestamp_unit, self._read(value), substring(value, 1, _LONGEST)
        if unit is not None:
            why = concat(
                lit(f"`{name}` is '"),
                shown,
                lit(f"', neither a timestamp nor a number of {unit} in the years 1 to 9999"),
            )
            return when(value.isNotNull() & time.isNull(), why)
        # twice the distance from the middle of the years, so that the time is only once in the plan
        distance = abs_(lit(2) * unix_seconds(time) - lit(FIRST_SECOND + LAST_SECOND))
        is_inside = coalesce(distance <= lit(LAST_SECOND - FIRST_SECOND), lit(False))
        # a cast takes 2024 for the first moment of a year, but it may be any number
        is_year = length(value) == 4
        is_wrong = value.isNotNull() & (~is_inside | is_year)
        what = f", a number of an unknown unit: set timestamp_unit of {self.table.full_name}"
        of_number = concat(lit(f"`{name}` is "), shown, lit(what))
        of_text = concat(lit(f"`{name}` is '"), shown, lit("', which is not a timestamp in the years 1 to 9999"))
        return when(is_wrong, when(value.rlike(_NUMBER), of_number).otherwise(of_text))

    def _ahead(self, time: Column, name: str, frame: DataFrame) -> Column:
        """Returns why an event time is wrong: two queries at different times have to find the same, so the clock is
        that of the record.
        """
        limit, messages = self.table.max_event_time, self.table.messages
        clock = _of_file(frame, "file_modification_time") if messages is None else col("timestamp")
        what = "the file was modified" if messages is None else "the message was written"
        when_written = (lit(f", more than {limit} after {what} ("), clock.cast("string"), lit(")"))
        why = concat(lit(f"`{name}` is "), time.cast("string"), *when_written)
        return when(time > clock + expr(f"interval {limit}"), why)


_LONGEST = 40
"""The most characters of a wrong text that a reason shows."""


def is_timestamp(kind: DataType) -> DataType | None:
    """Returns the type of the text of a timestamp, None for any other type that has no fields."""
    return StringType() if isinstance(kind, TimestampType) else None


def has_leaves(kind: DataType, raw: RawType) -> bool:
    """Returns whether a type is or contains one that `raw` knows."""
    if isinstance(kind, StructType):
        return any(has_leaves(field.dataType, raw) for field in kind)
    if isinstance(kind, MapType):
        return has_leaves(kind.valueType, raw)
    if isinstance(kind, ArrayType):
        return has_leaves(kind.elementType, raw)
    return raw(kind) is not None


def raw_struct(kind: StructType, raw: RawType) -> StructType:
    """Returns a struct with the types that `raw` knows replaced, at any depth."""
    return StructType([StructField(each.name, _raw_type(each.dataType, raw), each.nullable) for each in kind])


def _raw_type(kind: DataType, raw: RawType) -> DataType:
    if isinstance(kind, StructType):
        return raw_struct(kind, raw)
    if isinstance(kind, ArrayType):
        return ArrayType(_raw_type(kind.elementType, raw), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(kind.keyType, _raw_type(kind.valueType, raw), kind.valueContainsNull)
    return raw(kind) or kind


def map_leaves(value: Column, kind: DataType, raw: RawType, read: Callable[[Column, DataType], Column]) -> Column:
    """Returns a value with `read` applied to each part of a type that `raw` knows."""
    if not has_leaves(kind, raw):
        return value
    if isinstance(kind, StructType):
        fields = (map_leaves(value.getField(each.name), each.dataType, raw, read).alias(each.name) for each in kind)
        return when(value.isNotNull(), struct(*fields))  # a struct of nulls is not null
    if isinstance(kind, ArrayType):
        return transform(value, lambda item: map_leaves(item, kind.elementType, raw, read))
    if isinstance(kind, MapType):
        return transform_values(value, lambda _key, item: map_leaves(item, kind.valueType, raw, read))
    return read(value, kind)


def leaf_reasons(value: Column, kind: DataType, name: str, raw: RawType, test: Test) -> Iterator[Column]:
    """Yields the result of `test` for the parts of a value that `raw` knows, a column for each way to one."""
    if isinstance(kind, StructType):
        for each in kind:
            yield from leaf_reasons(value.getField(each.name), each.dataType, f"{name}.{each.name}", raw, test)
    elif isinstance(kind, ArrayType | MapType) and has_leaves(kind, raw):
        element = kind.elementType if isinstance(kind, ArrayType) else kind.valueType
        items = value if isinstance(kind, ArrayType) else map_values(value)
        # coalesce needs at least one column
        reasons = transform(items, lambda item: coalesce(*leaf_reasons(item, element, name, raw, test), lit(None)))
        yield get(filter_(reasons, lambda reason: reason.isNotNull()), lit(0))
    elif raw(kind) is not None:
        yield test(value, kind, name)
