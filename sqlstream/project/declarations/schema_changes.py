"""The key `schema_changes` of a source table: its checks, and the column that it adds."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sqlstream.errors import Finding
from sqlstream.project.configuration.columns import fields_of, with_columns
from sqlstream.project.declarations.on_corrupt import captures_corrupt, option_of
from sqlstream.project.messages.message_format import AVRO, DEBEZIUM, JSON
from sqlstream.project.types.data_types import Decimal, Field, Primitive
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted

CSV = "csv"

_TYPED_FILES = ("avro", "parquet", "orc")
"""The formats of files that have the names and types of their columns."""

RESCUED = "_rescued_data"
"""The column that `schema_changes: rescue` and `evolve` add: the fields that are not declared, as a JSON object."""

_HEADER = "header"
_JSON_LINES = {"multiLine": ("false",), "lineSep": (), "encoding": ("utf-8", "utf8"), "charset": ("utf-8", "utf8")}
"""The values of options of JSON files with which each line is a record in UTF-8."""

_SINGLE_BYTES = ("utf-8", "utf8", "us-ascii", "iso-8859-1")
_CSV_LINES = {
    "multiLine": ("false",),
    "lineSep": (),
    "encoding": _SINGLE_BYTES,
    "charset": _SINGLE_BYTES,
    "enforceSchema": (),
    "singleVariantColumn": (),
}
"""The values of options of CSV files with which each line is a record, whose header counts."""

_SEPARATOR = re.compile(r"[^\w.+-]|\\t")
"""A separator of CSV with which lines are split exactly: Spark's reader of lines returns a number for a line that is
one, and its parser reads quotes in front of a longer separator differently at the end of a line.
"""


def schema_change_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in `schema_changes` of `table` that the table alone shows."""
    if table.schema_changes is None:
        return
    problem = _format_problem(table)
    if problem is not None:
        yield problem
        return
    if not fields_of(table.spark_schema) and _parsed_format(table) != AVRO:  # whose schema need not be pinned yet
        yield _problem(
            table,
            "schema_changes",
            "sets schema_changes but declares no columns",
            "a field is new if no column is declared for it",
            'declare columns: or schema:, for example schema: "id bigint, ts timestamp"',
            code="missing-schema",
        )
    if any(field.name.casefold() == RESCUED for field in fields_of(table.spark_schema)) and rescues(table):
        yield _problem(
            table,
            "schema_changes",
            f"declares the column `{RESCUED}`, which schema_changes: {table.schema_changes} adds",
            "its values come from the fields that are not declared, not from a field of this name",
            f"remove the column `{RESCUED}`; models can select it",
        )
    if table.messages is None:
        yield from _file_problems(table)


def _format_problem(table: SourceTable) -> Finding | None:
    """Returns the error about a format whose records do not show fields that are not declared."""
    parsed, is_file = _parsed_format(table), table.messages is None
    if parsed not in ((JSON, CSV) if is_file else (JSON, AVRO, DEBEZIUM)):
        why = (
            "sqlstream finds new fields in lines of JSON and CSV files, and in messages with the value_format json, "
            "avro or debezium"
        )
        fix = "remove `schema_changes`"
        if is_file and parsed in _TYPED_FILES:
            why = f"Spark's reader of {parsed} files skips fields that are not declared, and does not show them"
            fix += "; `sqlstream source schema --diff` compares the declaration with the files"
        elif table.format == "kafka":
            fix = "set `value_format` to the format of the messages, or remove `schema_changes`"
        return _problem(table, "schema_changes", f"sets schema_changes, but its format is {quoted(parsed)}", why, fix)
    if parsed == AVRO and evolves(table):
        return _problem(
            table,
            "schema_changes",
            "sets schema_changes: evolve, but its messages are Avro",
            "their columns come from an Avro schema, so there is no declaration that a run could write",
            "set schema_changes: rescue, fail or ignore, and add new fields to schema_file or columns",
        )
    return None


def _parsed_format(table: SourceTable) -> str:
    return table.format if table.messages is None else table.messages.value_format


def _file_problems(table: SourceTable) -> Iterator[Finding]:
    if option_of(table, "mode") is not None or captures_corrupt(table):
        yield _problem(
            table,
            "schema_changes",
            "sets schema_changes, but an option or a column handles its corrupt records",
            "sqlstream reads the lines itself then, and `on_corrupt` says what happens to those that it cannot read",
            "set on_corrupt: fail, drop or quarantine instead, or remove `schema_changes`",
        )
    is_csv = table.format == CSV
    for name, values in (_CSV_LINES if is_csv else _JSON_LINES).items():
        option = option_of(table, name)
        if option is not None and str(table.options[option]).lower() not in values:
            yield _problem(
                table,
                f"options.{option}",
                f"sets both schema_changes and {option}: {table.options[option]}",
                "sqlstream finds new fields in files with one record in each line, whose columns it finds by their "
                "names in the header"
                if is_csv
                else "sqlstream finds new fields in files with one record in each line, in UTF-8",
                f"remove the option {option}, or `schema_changes`",
            )
    if is_csv:
        yield from _csv_problems(table)


def _csv_problems(table: SourceTable) -> Iterator[Finding]:
    header = option_of(table, _HEADER)
    if header is None or str(table.options[header]).lower() != "true":
        yield _problem(
            table,
            "schema_changes" if header is None else f"options.{header}",
            "sets schema_changes, but its files have no header",
            "without a header the columns of CSV have no names, so none is new",
            "set the option header: true if the files have a header, or remove `schema_changes`",
        )
    option = option_of(table, "sep") or option_of(table, "delimiter")
    if option is not None and not _SEPARATOR.fullmatch(str(table.options[option])):
        yield _problem(
            table,
            f"options.{option}",
            f"sets both schema_changes and {option}: {table.options[option]}",
            "sqlstream splits lines itself, and only at one character that numbers and words do not have",
            "use another separator in the files, or remove `schema_changes`",
        )
    for field in fields_of(table.spark_schema):
        if not isinstance(field.type, Primitive | Decimal):
            yield _problem(
                table,
                "schema_changes",
                f"declares the column {quoted(field.name)} with a type that CSV does not have",
                "a value of CSV is a text, which has no parts",
                "declare it as string, and read it with from_json or split in a model",
            )


def with_rescued(table: SourceTable) -> SourceTable:
    """Returns `table` with the column of rescued fields, if it has one."""
    if not rescues(table) or table.spark_schema is None:
        return table
    column = Field(RESCUED, Primitive("string"))
    return table.model_copy(update={"spark_schema": with_columns(table.spark_schema, (column,))})


def rescues(table: SourceTable) -> bool:
    """Returns whether `table` has the column of rescued fields."""
    return table.schema_changes in ("rescue", "evolve")


def evolves(table: SourceTable) -> bool:
    """Returns whether runs write the declaration of the new fields of `table`."""
    return table.schema_changes == "evolve"


def _problem(table: SourceTable, key: str, problem: str, why: str, fix: str, code: str = "invalid-value") -> Finding:
    place = table.locations.get(key, table.locations.get("schema_changes", table.location))
    return Finding(code, f"source {quoted(table.full_name)} {problem}", why, fix, place)
