"""Data tests as SQL: the condition that a row meets if it violates no test, and the notes in the compiled SQL.

As in a CHECK of SQL, a condition that is null is not violated: of all tests only `not_null` is about nulls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from sqlstream.compiler.sql.sql_text import quote_identifier, quote_text

if TYPE_CHECKING:
    from sqlstream.project.configuration.data_tests import DataTest  # few projects need its documents

NOTE = " sqlstream: data test "

ERRORS, QUERY, QUERY_ID, BATCH = "_errors", "_query", "_query_id", "_batch"
QUARANTINE_ID, QUARANTINED_AT = "_quarantine_id", "_quarantined_at"
SOURCE = "_source"

SOURCE_TYPE = "struct<name: string, file: string, topic: string, partition: int, offset: bigint>"
"""Spark's type of the place of a row in its source."""

QUARANTINE_COLUMNS: tuple[tuple[str, str], ...] = (
    (ERRORS, "array<struct<name: string, message: string, columns: array<string>>>"),
    (SOURCE, SOURCE_TYPE),
    (QUERY, "string"),
    (QUERY_ID, "string"),
    (BATCH, "bigint"),
    (QUARANTINE_ID, "string"),
    (QUARANTINED_AT, "timestamp"),
)
"""The columns of a quarantined row after those of the model, with Spark's types."""


def passes(test: DataTest) -> str:
    """Returns the condition of SQL, true or false, that a row meets if it does not violate `test`."""
    met = f"coalesce(({_ended(_condition(test))}), true)"
    return met if test.where is None else f"({met} or not coalesce(({_ended(test.where)}), false))"


def written(test: DataTest) -> str:
    """Returns the condition of `test` as it is written, which can be null, for the compiled SQL and for findings."""
    condition = _ended(_condition(test))
    return condition if test.where is None else f"({condition}) or not ({_ended(test.where)})"


def conditions(test: DataTest) -> tuple[str, ...]:
    """Returns the condition of `test` and that of its `where`, as they are written."""
    return (_condition(test),) if test.where is None else (_condition(test), test.where)


def described(test: DataTest) -> str:
    """Returns what `test` demands, for readers: its condition as it is written, or of a test that compares rows with
    others its columns or its query.
    """
    if not test.is_of_table:
        return written(test)
    if test.query is not None:
        return test.query
    columns = ", ".join(quote_identifier(name, always=True) for name in test.keys or (test.column or "",))
    keys: Any = test.document
    is_unique = test.parent is None
    text = f"{columns} is {'unique' if is_unique else f'in {quote_identifier(keys.field, always=True)} of {keys.to}'}"
    return text if test.where is None else f"{text}, where {test.where}"


def demanded(test: DataTest) -> str:
    """Returns what `test` demands, for readers, on one line."""
    text = _on_one_line(described(test))
    return f"no row from: {text}" if test.is_of_table and test.query is not None else text


def _ended(condition: str) -> str:
    return f"{condition}\n" if "--" in condition else condition  # a comment ends with its line


def _condition(test: DataTest) -> str:
    keys: Any = test.document  # the keys of its kind
    column = "" if test.column is None else quote_identifier(test.column, always=True)
    if test.is_generic:
        return f"not ({_ended(test.fails_if or 'false')})"
    if test.kind == "accepted_values":
        return f"{column} in ({', '.join(_literal(value, quote=keys.quote) for value in keys.values)})"
    if test.kind == "accepted_range":
        return _between(column, keys.min_value, keys.max_value, is_inclusive=keys.inclusive)
    if test.kind == "accepted_length":
        return _between(f"char_length({column})", keys.min_value, keys.max_value, is_inclusive=True)
    if test.kind == "matches_regex":
        return f"{column} rlike {quote_text(keys.regex)}"
    if test.kind == "expression_is_true":
        return f"{column} {keys.expression}".lstrip()
    if test.keys:  # what a row must have to be compared with others
        return " and ".join(f"{quote_identifier(name, always=True)} is not null" for name in test.keys)
    return f"{column} is not null"


def _between(value: str, least: object, most: object, *, is_inclusive: bool) -> str:
    or_equal = "=" if is_inclusive else ""
    limits = [f"{value} >{or_equal} {least}"] if least is not None else []
    return " and ".join(limits + ([f"{value} <{or_equal} {most}"] if most is not None else []))


def _literal(value: object, *, quote: bool) -> str:
    if isinstance(value, str):
        return quote_text(value) if quote else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def kept_rows(tests: Sequence[DataTest]) -> tuple[str, ...]:
    """Returns the conditions that all rows meet that no test leaves out."""
    return tuple(passes(test) for test in tests if test.leaves_out)


def with_tests(sql: str, tests: Sequence[DataTest], *, python: bool = False) -> str:
    """Returns the compiled `sql`, or the text of a `python` model, with a comment about each test."""
    return f"{sql.rstrip()}\n{_notes(tests, python=python)}" if tests else sql


def without_tests(sql: str, tests: Sequence[DataTest], *, python: bool = False) -> str:
    """Returns what `with_tests` was given, with its end on a line."""
    return sql.removesuffix(_notes(tests, python=python))


def offset_of_test(sql: str, test: DataTest) -> int:
    """Returns the offset of the condition in the comment about `test`; that of the end of `sql` if it has none."""
    start = sql.rfind(_beginning(test))
    return len(sql) if start < 0 else start + len(_beginning(test))


def _notes(tests: Sequence[DataTest], *, python: bool) -> str:
    comment = "#" if python else "--"
    return "".join(f"{comment}{_beginning(test)}{_on_one_line(described(test))}\n" for test in tests)


def rows_where(relation: str, condition: str) -> str:
    """Returns the query of the rows of `relation`, the name of a model or a query in parentheses, that meet it."""
    return f"select * from {relation} where ({_ended(condition)})"  # noqa: S608 - it is the user's own SQL


def _beginning(test: DataTest) -> str:
    return f"{NOTE}{test.name} ({'test --data' if test.is_of_table else test.action}): "


def _on_one_line(sql: str) -> str:
    return "".join(" " if character in "\r\n" else character for character in sql)  # every offset stays
