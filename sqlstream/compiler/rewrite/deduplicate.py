"""`deduplicate`: a model returns one of the rows with the same values in some columns.

Spark's SQL has no syntax for it, so the compiled SQL ends with a comment, and sqlstream applies Spark's operator to the
rows of the SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

NOTE = " sqlstream: deduplicate by "


def with_note(sql: str, columns: Sequence[str], *, python: bool = False) -> str:
    """Returns the compiled `sql`, or the text of a `python` model, with a comment about the `columns` by which its rows
    are deduplicated, if there are any.
    """
    shown = ", ".join(" ".join(name.split()) for name in key_columns(columns))  # a name can contain line ends
    return f"{sql.rstrip()}\n{'#' if python else '--'}{NOTE}{shown}\n" if columns else sql


def note_offset(sql: str) -> int:
    """Returns the offset of that comment in compiled SQL."""
    return sql.rindex(NOTE)


def key_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns sorted and without duplicates. Their order has no meaning for the user, but Spark finds its
    state only if it does not change.
    """
    return tuple(sorted({name.lower(): name for name in reversed(columns)}.values(), key=str.lower))
