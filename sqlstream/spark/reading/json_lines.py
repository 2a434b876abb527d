"""Reads the lines of JSON files itself, so that fields which the source does not declare are seen.

Spark's reader of JSON does not return the text of a record that it can parse. Its reader of text returns no columns of
folders (`day=2026-01-01`) beside it. So the reader of CSV returns each line, as the first of its columns; the declared
columns follow, which have values only where they are the name of a folder.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    coalesce,
    col,
    concat,
    count_if,
    current_timestamp,
    lit,
    raise_error,
    spark_partition_id,
    when,
)
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DateType,
    NumericType,
    StringType,
    StructField,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.declarations.on_corrupt import CORRUPT_COLUMNS
from sqlstream.project.declarations.schema_changes import RESCUED, rescues
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt import CORRUPT_RECORD, ColumnChecks, Counters, is_good, path_of_file
from sqlstream.spark.reading.message_formats.parsers import JsonParser
from sqlstream.spark.reading.new_fields import NewFields
from sqlstream.state.signature.source_checks import RECORD

LINE, FILE, REASON = "_sqlstream_line", "_sqlstream_file", "_sqlstream_reason"
"""Columns that models do not see: a line, its file, and the reason why it is corrupt (null: good)."""

_NEVER = "\uffff\u0000\uffff"
"""A text that no JSON contains."""

LINE_OPTIONS = {
    "sep": _NEVER,
    "quote": "\u0000",
    "escape": "\u0000",
    "comment": "\u0000",
    "header": "false",
    "nullValue": _NEVER,
    "mode": "PERMISSIVE",
    "maxCharsPerColumn": "-1",
}
"""The options of Spark's reader of CSV with which the first column is the line. It skips blank ones, as JSON's does."""


@dataclass(frozen=True)
class JsonLines:
    """The lines of the files of `table` as records with the columns of `declared`. `options` are those of the parser,
    with all secrets; `checks` reads their timestamps.
    """

    table: SourceTable
    declared: StructType
    options: Mapping[str, str]
    checks: ColumnChecks

    @cached_property
    def schema(self) -> StructType:
        """The columns of the reader of CSV."""
        parsed = self.checks.parsed(self.declared)
        return StructType(
            [StructField(LINE, StringType()), *(each for each in parsed if _can_be_folder(each.dataType))]
        )

    def rows(self, frame: DataFrame, policy: str, counters: Counters) -> DataFrame:
        """Returns the good records of `frame`, the reader, with their declared types, and with the column of rescued
        fields if `table` has it. `policy` is what happens to corrupt ones.
        """
        records = self._records(frame)
        if policy == "drop" and counters.dropped is not None:
            records = records.observe(counters.dropped, count_if(col(REASON).isNotNull()).alias("rows"))
        good = is_good(col(REASON))
        if policy == "fail":
            start = lit(f"{CORRUPT_RECORD}\n{self.table.full_name}\n")
            error = raise_error(concat(start, col(FILE), lit("\n"), col(REASON)))
            good = when(good, lit(True)).otherwise(error.cast("boolean"))
        new = NewFields(self.table, self.declared, col(LINE), self.options, col(FILE), col(FILE))
        columns = [self.checks.typed(value, kind).alias(name) for name, value, kind in self._columns]
        if rescues(self.table):
            columns.append(new.rescued().alias(RESCUED))
        return new.found(records.filter(good), counters.new_fields).select(*columns)

    def corrupt(self, frame: DataFrame) -> DataFrame:
        """Returns the corrupt lines of `frame`, with the columns of a table of corrupt records."""
        corrupt = self._records(frame).filter(col(REASON).isNotNull())
        found = {"record": col(LINE), "file": col(FILE), "reason": col(REASON), "quarantined_at": current_timestamp()}
        return corrupt.select(*(found[column.name].alias(column.name) for column in CORRUPT_COLUMNS))

    def _records(self, frame: DataFrame) -> DataFrame:
        parser = JsonParser(self.checks.parsed(self.declared), self.options)
        # it depends on the partition, so that Spark does not parse again for each column
        record = when(spark_partition_id() >= 0, parser.parse(col(LINE)))
        located = frame.withColumn(FILE, path_of_file(frame)).withColumn(RECORD, record)
        reasons = [
            concat(lit("the line "), parser.unread(col(LINE), col(RECORD))),
            *self.checks.problems(self._columns, frame),
        ]
        return located.withColumn(REASON, coalesce(*reasons))

    @property
    def _columns(self) -> list[tuple[str, Column, DataType]]:
        """The name, the parsed value and the declared type of each column."""
        found = []
        for each in self.declared:
            value = col(RECORD).getField(each.name)
            if each.name in self.schema.names:
                value = coalesce(col(quote_identifier(each.name)), value)
            found.append((each.name, value, each.dataType))
        return found


def _can_be_folder(kind: DataType) -> bool:
    return isinstance(kind, BooleanType | DateType | NumericType | StringType | TimestampNTZType | TimestampType)
