"""The key `schema_changes` of a source table: its checks, and the column that it adds."""

from __future__ import annotations

from collections.abc import Iterator

from sqlstream.errors import Finding
from sqlstream.project.configuration.columns import fields_of, with_columns
from sqlstream.project.declarations.on_corrupt import captures_corrupt, option_of
from sqlstream.project.types.data_types import Field, Primitive
from sqlstream.project.values import SourceTable
from sqlstream.project.wording import quoted

JSON = "json"

RESCUED = "_rescued_data"
"""The column that `schema_changes: rescue` and `evolve` add: the fields that are not declared, as a JSON object."""

_ONE_LINE = {"multiLine": ("false",), "lineSep": (), "encoding": ("utf-8", "utf8"), "charset": ("utf-8", "utf8")}
"""The values of options of files with which each line is a record in UTF-8."""


def schema_change_problems(table: SourceTable) -> Iterator[Finding]:
    """Yields the errors in `schema_changes` of `table` that the table alone shows."""
    if table.schema_changes is None:
        return
    parsed = table.format if table.messages is None else table.messages.value_format
    if parsed != JSON:
        yield _problem(
            table,
            "schema_changes",
            f"sets schema_changes, but its records are not JSON but {quoted(parsed)}",
            "sqlstream finds new fields only in lines of JSON files and in messages with value_format: json",
            "remove `schema_changes`",
        )
        return
    if not fields_of(table.spark_schema):
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


def _file_problems(table: SourceTable) -> Iterator[Finding]:
    if option_of(table, "mode") is not None or captures_corrupt(table):
        yield _problem(
            table,
            "schema_changes",
            "sets schema_changes, but an option or a column handles its corrupt records",
            "sqlstream reads the lines itself then, and `on_corrupt` says what happens to those that it cannot read",
            "set on_corrupt: fail, drop or quarantine instead, or remove `schema_changes`",
        )
    for name, values in _ONE_LINE.items():
        option = option_of(table, name)
        if option is not None and str(table.options[option]).lower() not in values:
            yield _problem(
                table,
                f"options.{option}",
                f"sets both schema_changes and {option}: {table.options[option]}",
                "sqlstream finds new fields in files with one record in each line, in UTF-8",
                f"remove the option {option}, or `schema_changes`",
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
