"""Reads the lines of JSON and CSV files itself, so that fields which the source does not declare are seen.

Spark's readers do not return the text of a record that they can parse, and its reader of text returns no columns of
folders (`day=2026-01-01`) beside it. So the reader of CSV returns each line as one value.

JSON: the line is the first of the columns; the declared ones follow, which have values only where they are the name of
a folder. CSV: Spark's reader returns a line as a variant with the header of its file as the name of the only field,
also for the parts of a large file. Both texts are then split in the same way, and columns are found by their names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

from pyspark.sql import Column, DataFrame
from pyspark.sql.functions import (
    array,
    array_contains,
    array_distinct,
    array_except,
    array_position,
    array_remove,
    coalesce,
    col,
    concat,
    concat_ws,
    count_if,
    current_timestamp,
    element_at,
    from_csv,
    from_json,
    get,
    lit,
    lower,
    map_from_arrays,
    map_keys,
    map_values,
    nullif,
    replace,
    reverse,
    schema_of_variant,
    sequence,
    size,
    to_json,
    transform,
    trim,
    try_element_at,
    try_variant_get,
    when,
)
from pyspark.sql.functions import filter as filter_
from pyspark.sql.functions import split as split_text
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
    VariantType,
)

from sqlstream.compiler.sql.sql_text import quote_identifier
from sqlstream.project.declarations.on_corrupt import CORRUPT_COLUMNS, CORRUPT_OPTION
from sqlstream.project.declarations.schema_changes import CSV, RESCUED, rescues
from sqlstream.project.values import SourceTable
from sqlstream.spark.reading.corrupt import (
    CORRUPT_RECORD,
    ColumnChecks,
    Counters,
    fails_at,
    is_good,
    once,
    path_of_file,
    with_corrupt,
)
from sqlstream.spark.reading.message_formats.parsers import JsonParser
from sqlstream.spark.reading.new_fields import NewFields
from sqlstream.spark.reading.type_text import type_text
from sqlstream.state.signature.source_checks import CORRUPT, RECORD, STEP

LINE, FILE, REASON = "_sqlstream_line", "_sqlstream_file", "_sqlstream_reason"
"""Columns that models do not see: a line, its file, and the reason why it is corrupt (null: good)."""

_NEVER = "\uffff\u0000\uffff"
"""A text that no JSON contains."""

_LINE_OPTIONS = {
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

Load = Callable[[Mapping[str, str], StructType], DataFrame]
"""Returns Spark's reader of CSV for the files of the table, with these options and columns."""


@dataclass(frozen=True)
class FileLines(ABC):
    """The lines of the files of `table` as records with the columns of `declared`. `options` are those of the parser,
    with all secrets; `checks` reads their timestamps.
    """

    table: SourceTable
    declared: StructType
    options: Mapping[str, str]
    checks: ColumnChecks

    @abstractmethod
    def open(self, load: Load) -> DataFrame:
        """Returns the reader of the lines. Raises: Spark's errors."""

    @abstractmethod
    def _records(self, frame: DataFrame) -> DataFrame:
        """Returns the reader with the columns `LINE`, `FILE`, `RECORD`, the parsed line, and `REASON`."""

    @abstractmethod
    def _new(self) -> NewFields:
        """Returns the new fields of the records."""

    def rows(self, frame: DataFrame, policy: str, counters: Counters) -> DataFrame:
        """Returns the good records of `frame`, the reader, with their declared types, and with the column of rescued
        fields if `table` has it. `policy` is what happens to corrupt ones.
        """
        records = self._records(frame)
        if policy == "drop" and counters.dropped is not None:
            records = records.observe(counters.dropped, count_if(col(REASON).isNotNull()).alias("rows"))
        is_kept = is_good(col(REASON))
        if policy == "fail":
            start = lit(f"{CORRUPT_RECORD}\n{self.table.full_name}\n")
            is_kept = fails_at(col(REASON).isNotNull(), concat(start, col(FILE), lit("\n"), col(REASON)))
        new = self._new()
        columns = [self.checks.typed(value, kind).alias(name) for name, value, kind in self._columns(frame)]
        if rescues(self.table):
            columns.append(new.rescued().alias(RESCUED))
        return new.found(records.filter(is_kept), counters.new_fields).select(*columns)

    def corrupt(self, frame: DataFrame) -> DataFrame:
        """Returns the corrupt lines of `frame`, with the columns of a table of corrupt records."""
        corrupt = self._records(frame).filter(col(REASON).isNotNull())
        found = {"record": col(LINE), "file": col(FILE), "reason": col(REASON), "quarantined_at": current_timestamp()}
        return corrupt.select(*(found[column.name].alias(column.name) for column in CORRUPT_COLUMNS))

    def _columns(self, frame: DataFrame) -> list[tuple[str, Column, DataType]]:
        """Returns the name, the parsed value and the declared type of each column."""
        found = []
        for each in self.declared:
            value = col(RECORD).getField(each.name)
            if each.name in frame.columns:
                value = coalesce(col(quote_identifier(each.name)), value)
            found.append((each.name, value, each.dataType))
        return found


def lines_of(table: SourceTable, declared: StructType, options: Mapping[str, str], checks: ColumnChecks) -> FileLines:
    """Returns the lines of the files of `table`."""
    return (CsvLines if table.format == CSV else JsonLines)(table, declared, options, checks)


class JsonLines(FileLines):
    """Lines that are JSON objects."""

    def open(self, load: Load) -> DataFrame:
        """Returns the reader of the lines. Raises: Spark's errors."""
        folders = (each for each in self._parsed if _can_be_folder(each.dataType))
        return load(_LINE_OPTIONS, StructType([StructField(LINE, StringType()), *folders]))

    def _records(self, frame: DataFrame) -> DataFrame:
        parser = JsonParser(self._parsed, self.options)
        located = frame.withColumn(FILE, path_of_file(frame)).withColumn(RECORD, once(parser.parse(col(LINE))))
        reasons = [
            concat(lit("the line "), parser.unread(col(LINE), col(RECORD))),
            *self.checks.problems(self._columns(frame), frame),
        ]
        return located.withColumn(REASON, coalesce(*reasons))

    def _new(self) -> NewFields:
        return NewFields(self.table, self.declared, col(LINE), self.options, col(FILE), col(FILE))

    @cached_property
    def _parsed(self) -> StructType:
        return self.checks.parsed(self.declared)


_PAIR, _IS_TEXT, _NAMES, _LOWERED, _VALUES, _FOUND, _NEW = (
    f"{STEP}{name}" for name in ("pair", "is_text", "names", "lowered", "values", "found", "new")
)
"""Columns of lines of CSV: the header and the line; whether the line is a text, not a number; the names in the header,
as written and in lower case; the values of the line, those of the declared columns, and a JSON object with the others.
"""

_END, _EMPTY = "\ue0f0sqlstream\ue0f1", "\ue0f2sqlstream\ue0f3"
"""Texts that no line contains: the value after the last one of a line, and a value that is not there."""

_LOCALE = "ar-EG-u-nu-arab"
"""A locale whose decimal separator is neither a comma nor a point: Spark returns a number for a line that is one."""

_MORE_COLUMNS = 200
"""The most values that a line with quotes can have beyond the declared columns: Spark's function needs a number."""

_MOST_COLUMNS = 20_480
"""Spark's default for `maxColumns`."""

_SPLIT_OPTIONS = frozenset(
    {
        *("sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "unescapedquotehandling"),
        *("ignoreleadingwhitespace", "ignoretrailingwhitespace", "maxcharspercolumn", "maxcolumns"),
    }
)
"""The options of CSV, in lower case, with which a line is split into values; the others are about values."""

_PLAIN_OPTIONS = frozenset({"sep", "delimiter", "quote", "escape", "chartoescapequoteescaping", "maxcolumns"})
"""Those of them that change nothing in a line without quotes but its separator."""

_FILE_OPTIONS = frozenset({"comment", "header", "encoding", "charset", "mode", "linesep", "multiline"})
"""Those with which lines are found."""


class CsvLines(FileLines):
    """Lines of CSV files with a header, which has the name of each value."""

    def open(self, load: Load) -> DataFrame:
        """Returns the reader of the lines, with the declared columns that folders have. Raises: Spark's errors."""
        options = {
            **_LINE_OPTIONS,
            "comment": self._option("comment") or "\u0000",
            "header": "true",
            "enforceSchema": "true",
            "singleVariantColumn": _PAIR,
            CORRUPT_OPTION: CORRUPT,
            "locale": _LOCALE,
            "ignoreLeadingWhiteSpace": "false",
            "ignoreTrailingWhiteSpace": "false",
            # a line must remain text
            **dict.fromkeys(("dateFormat", "timestampFormat", "timestampNTZFormat"), f"'{_END}'"),
        }
        pair = with_corrupt(StructType([StructField(_PAIR, VariantType())]))
        listed = load(options, pair)
        names = {name.lower() for name in listed.columns}
        folders = [each for each in self.declared if each.name.lower() in names]
        return load(options, StructType([*pair, *folders])) if folders else listed

    def _records(self, frame: DataFrame) -> DataFrame:
        pair = try_variant_get(col(_PAIR), "$", "map<string,variant>")
        split = frame.withColumn(FILE, path_of_file(frame)).withColumn(_PAIR, once(pair))
        header = get(map_keys(col(_PAIR)), lit(0))
        line = get(map_values(col(_PAIR)), lit(0))
        text = coalesce(try_variant_get(line, "$", "string"), col(CORRUPT))
        split = split.withColumns({LINE: text, _IS_TEXT: schema_of_variant(line) == "STRING"})
        names = transform(self._split(header), lambda name: trim(coalesce(name, lit(""))))
        split = split.withColumns({_NAMES: once(names), _VALUES: once(self._split(col(LINE)))})
        split = split.withColumn(_LOWERED, once(transform(col(_NAMES), lower)))
        split = split.withColumn(_FOUND, once(self._of_declared())).withColumn(_NEW, once(self._of_others()))
        records = split.withColumn(RECORD, once(self._record()))
        reasons = [*self._problems(), *self.checks.problems(self._columns(frame), frame)]
        return records.withColumn(REASON, coalesce(*reasons))

    def _new(self) -> NewFields:
        return NewFields(self.table, StructType(), col(_NEW), {}, col(FILE), col(FILE), has_texts=True)

    def _option(self, name: str) -> str | None:
        return next((value for key, value in self.options.items() if key.lower() == name), None)

    @property
    def _separator(self) -> str:
        written = self._option("sep") or self._option("delimiter") or ","
        return written.replace("\\t", "\t").replace("\\\\", "\\")

    @property
    def _most(self) -> int:
        return len(self.declared) + _MORE_COLUMNS

    def _split(self, text: Column) -> Column:
        """Returns the values of a line, null for an empty one without quotes; null if a quote is not closed."""
        given = {name: value for name, value in self.options.items() if name.lower() in _SPLIT_OPTIONS}
        if any(name.lower() not in _PLAIN_OPTIONS for name in given):
            return self._split_by_spark(text, given)
        plain = transform(
            split_text(text, lit(f"\\Q{self._separator}\\E"), lit(-1)), lambda value: nullif(value, lit(""))
        )
        quote = self._option("quote")
        has_quotes = text.contains('"' if quote is None else quote or "\u0000")
        return when(~has_quotes, plain).otherwise(self._split_by_spark(text, given))

    def _split_by_spark(self, text: Column, given: Mapping[str, str]) -> Column:
        """Returns the values of a line as Spark's parser finds them. It needs a number of columns, so more empty values
        follow behind `_END`, and JSON makes a map of those that are not null.
        """
        most = int(self._option("maxcolumns") or _MOST_COLUMNS) + self._most
        options = {"maxCharsPerColumn": "-1", **given, "maxColumns": str(most), "nullValue": _EMPTY}
        padded = concat(text, lit(self._separator + _END + self._separator * self._most))
        schema = ", ".join(f"`{number}` string" for number in range(self._most + 1))
        fields = from_json(to_json(from_csv(padded, schema, options)), "map<string,string>")

        def values(found: Column) -> Column:
            last = element_at(map_keys(found), -1)
            numbers = sequence(lit(0), last.cast("int") - 1)
            before = transform(numbers, lambda number: try_element_at(found, number.cast("string")))
            return when((try_element_at(found, last) == _END) & (last != "0"), before)

        return get(transform(array(fields), values), lit(0))

    def _of_declared(self) -> Column:
        """Returns the value of each declared column, null where the header does not have its name."""
        lowered = transform(col(_NAMES), lower)
        values = (
            get(col(_VALUES), (array_position(lowered, lower(lit(each.name))) - 1).cast("int"))
            for each in self.declared
        )
        return array(*values)

    def _of_others(self) -> Column:
        """Returns the values whose names are not declared, as a JSON object; null without any. If the header has a name
        twice, the last one counts.
        """
        declared = array(*(lower(lit(each.name)) for each in self.declared))
        names = filter_(array_distinct(col(_NAMES)), lambda name: ~array_contains(declared, lower(name)))
        has_others = size(array_except(col(_LOWERED), declared)) > 0
        null = lit(self._option("nullvalue") or "")

        def last(name: Column) -> Column:
            position = size(col(_NAMES)) - array_position(reverse(col(_NAMES)), name)
            return nullif(get(col(_VALUES), position.cast("int")), null)

        return when(has_others, to_json(map_from_arrays(names, transform(names, last))))

    def _record(self) -> Column:
        """Returns the declared columns. Spark's parser reads them from one line, in which each value has quotes."""
        quoted = transform(
            col(_FOUND),
            lambda value: coalesce(concat(lit('"'), replace(value, lit('"'), lit('""')), lit('"')), lit("")),
        )
        given = {
            name: value
            for name, value in self.options.items()
            if name.lower() not in _SPLIT_OPTIONS and name.lower() not in _FILE_OPTIONS
        }
        options = {**given, "sep": ",", "quote": '"', "escape": '"', "mode": "PERMISSIVE", CORRUPT_OPTION: CORRUPT}
        # Spark's parser returns nothing for an empty line
        schema = StructType([StructField(_PAIR, StringType()), *with_corrupt(self.declared)])
        text = concat_ws(",", array(lit("-")), quoted)
        return from_csv(text, _ddl(schema), {"maxCharsPerColumn": "-1", **options})

    def _problems(self) -> list[Column]:
        """Returns why a line is corrupt; each is null for good ones."""
        names, values = size(col(_NAMES)), size(col(_VALUES))
        doubled = (
            when(names - size(array_remove(col(_LOWERED), lower(lit(each.name)))) > 1, f"`{each.name}`")
            for each in self.declared
        )
        listed = concat_ws(", ", *doubled)
        null = lit(self._option("nullvalue") or "")
        unread = concat_ws(", ", *(self._unread(at, each, null) for at, each in enumerate(self.declared)))
        corrupt = col(RECORD).getField(CORRUPT).isNotNull()
        open_ = f"a quote that is not closed, or more than {self._most} columns"
        return [
            when(col(_PAIR).isNull(), lit("the line is too long")),
            when(col(_NAMES).isNull(), lit(f"the header of the file has {open_}")),
            when(names == 1, concat(lit("the header of the file has only one column, "), col(_NAMES)[0])),
            when(~col(_IS_TEXT), lit("the line has only one value")),
            when(
                (size(array_distinct(col(_LOWERED))) < names) & (listed != ""),
                concat(lit("the header of the file has columns twice: "), listed),
            ),
            when(col(_VALUES).isNull(), lit(f"the line has {open_}")),
            when(
                names != values,
                concat(lit("the line has "), values, lit(" values, but the header of the file has "), names),
            ),
            when(corrupt, concat_ws(": ", lit("the line has a value that cannot be read"), nullif(unread, lit("")))),
        ]

    def _unread(self, position: int, column: StructField, null: Column) -> Column:
        """Returns the name and type of a column that a line has, but that Spark cannot read."""
        value = get(col(_FOUND), lit(position))
        is_unread = (value != null) & col(RECORD).getField(column.name).isNull()
        return when(is_unread, f"`{column.name}` as {column.dataType.simpleString()}")


def _ddl(schema: StructType) -> str:
    return ", ".join(f"{quote_identifier(each.name)} {type_text(each.dataType)}" for each in schema)


def _can_be_folder(kind: DataType) -> bool:
    return isinstance(kind, BooleanType | DateType | NumericType | StringType | TimestampNTZType | TimestampType)
