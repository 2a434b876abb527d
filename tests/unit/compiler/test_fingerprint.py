"""The fingerprint of a query's SQL."""

from __future__ import annotations

import pytest

from sqlstream.compiler.sql.sql_text import fingerprint

SQL = "select a, 'B' as `C` from x where d > 1e5"


@pytest.mark.parametrize(
    "same",
    [
        "SELECT A, 'B' AS `C`\n  FROM X -- a comment\nWHERE D>1E5 ;\n",
        "/* why */ select a , 'B' as `C` from x where d > 1e5;",
    ],
)
def test_formatting_does_not_change_the_fingerprint(same: str) -> None:
    """Comments, white space, letter case and a final semicolon do not change the fingerprint."""
    assert fingerprint(same) == fingerprint(SQL)


@pytest.mark.parametrize(
    "other",
    [
        SQL.replace("'B'", "'b'"),
        SQL.replace("`C`", "`c`"),
        SQL.replace("a,", "/*+ BROADCAST(x) */ a,"),
        SQL.replace("> 1e5", ">= 1e5"),
        SQL.replace("a,", "a"),
        SQL + " 'open",
    ],
)
def test_tokens_change_the_fingerprint(other: str) -> None:
    """Strings, quoted identifiers, hints and all other tokens change the fingerprint; unreadable SQL has one too."""
    assert fingerprint(other) != fingerprint(SQL)
