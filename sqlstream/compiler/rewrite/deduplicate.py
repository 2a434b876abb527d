"""`deduplicate`: of rows with the same values in some columns, a model gives one.

Spark's SQL has no words for it, so the compiled SQL says it in a last line, a comment, and sqlstream runs it as Spark's
own operator on the rows of the SQL.
"""

from __future__ import annotations

from collections.abc import Sequence

NOTE = " sqlstream: deduplicate by "


def with_note(sql: str, columns: Sequence[str], *, python: bool = False) -> str:
    """Returns the compiled `sql`, or the text of a `python` model, with the line that says what its rows are
    deduplicated by, where they are.
    """
    shown = ", ".join(" ".join(name.split()) for name in key_columns(columns))  # on one line, whatever a name holds
    return f"{sql.rstrip()}\n{'#' if python else '--'}{NOTE}{shown}\n" if columns else sql


def note_offset(sql: str) -> int:
    """Returns where in compiled SQL that line begins."""
    return sql.rindex(NOTE)


def key_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Returns the columns as the operator gets them: in one order and each once, since their order means nothing, and
    Spark's state would not be found under another.
    """
    return tuple(sorted({name.lower(): name for name in reversed(columns)}.values(), key=str.lower))
