"""Data tests as SQL: the condition that a row meets if it violates no test, and the notes in the compiled SQL.

As in a CHECK of SQL, a condition that is null is not violated: of all tests only `not_null` is about nulls.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlstream.compiler.sql.sql_text import quote_identifier, quote_text
from sqlstream.project.configuration.data_tests import (
    AcceptedLength,
    AcceptedRange,
    AcceptedValues,
    DataTest,
    ExpressionIsTrue,
    MatchesRegex,
)

NOTE = " sqlstream: data test "


def passes(test: DataTest) -> str:
    """Returns the condition of SQL, true or false, that a row meets if it does not violate `test`."""
    met = f"coalesce(({_ended(_condition(test))}), true)"
    return met if test.where is None else f"({met} or not coalesce(({_ended(test.where)}), false))"


def written(test: DataTest) -> str:
    """Returns the condition of `test` as it is written, which can be null, for the compiled SQL and for findings."""
    condition = _ended(_condition(test))
    return condition if test.where is None else f"({condition}) or not ({_ended(test.where)})"


def _ended(condition: str) -> str:
    return f"{condition}\n" if "--" in condition else condition  # a comment ends with its line


def _condition(test: DataTest) -> str:
    document, column = test.document, "" if test.column is None else quote_identifier(test.column, always=True)
    if isinstance(document, AcceptedValues):
        return f"{column} in ({', '.join(_literal(value, quote=document.quote) for value in document.values)})"
    if isinstance(document, AcceptedRange):
        least, most = (">=", "<=") if document.inclusive else (">", "<")
        return _between(column, f"{least} {document.min_value}", f"{most} {document.max_value}", document)
    if isinstance(document, AcceptedLength):
        return _between(f"char_length({column})", f">= {document.min_value}", f"<= {document.max_value}", document)
    if isinstance(document, MatchesRegex):
        return f"{column} rlike {quote_text(document.regex)}"
    if isinstance(document, ExpressionIsTrue):
        return f"{column} {document.expression}".lstrip()
    return f"{column} is not null"


def _between(value: str, least: str, most: str, document: AcceptedRange | AcceptedLength) -> str:
    low = [f"{value} {least}"] if document.min_value is not None else []
    return " and ".join(low + ([f"{value} {most}"] if document.max_value is not None else []))


def _literal(value: object, *, quote: bool) -> str:
    if isinstance(value, str):
        return quote_text(value) if quote else value
    return str(value).lower() if isinstance(value, bool) else str(value)


def kept_rows(tests: Sequence[DataTest]) -> tuple[str, ...]:
    """Returns the conditions that all rows meet that no test drops."""
    return tuple(passes(test) for test in tests if test.action == "drop")


def with_notes(sql: str, tests: Sequence[DataTest], *, python: bool = False) -> str:
    """Returns the compiled `sql`, or the text of a `python` model, with a comment about each test."""
    notes = [f"{'#' if python else '--'}{_beginning(test)}{_on_one_line(written(test))}" for test in tests]
    return "\n".join([sql.rstrip(), *notes, ""]) if notes else sql


def without_notes(sql: str) -> str:
    """Returns compiled SQL without the comments about data tests."""
    start = sql.find(f"--{NOTE}")
    return sql if start < 0 else sql[:start]


def note_offset(sql: str, test: DataTest) -> int:
    """Returns the offset of the condition in the comment about `test`; that of the end of `sql` if it has none."""
    start = sql.rfind(_beginning(test))
    return len(sql) if start < 0 else start + len(_beginning(test))


def rows_where(relation: str, condition: str) -> str:
    """Returns the query of the rows of `relation`, the name of a model or a query in parentheses, that meet it."""
    return f"select * from {relation} where {condition}"  # noqa: S608 - it is the user's own SQL


def _beginning(test: DataTest) -> str:
    return f"{NOTE}{test.name} ({test.action}): "


def _on_one_line(sql: str) -> str:
    return "".join(" " if character in "\r\n" else character for character in sql)  # every offset stays
