"""The output of `sqlstream dev`."""

from __future__ import annotations

from datetime import datetime

from sqlstream.app.show.dev import refreshed_text
from sqlstream.errors import Finding
from sqlstream.state.shown_rows import ShownColumn, ShownRows

AT = datetime(2024, 1, 1, 12, 0, 5)


def test_rows_follow_a_line_about_the_change() -> None:
    """Rows follow a line with the change and its duration, and a blank line ends the block."""
    rows = ShownRows("m", "model.p.m", (ShownColumn("id", "int"),), ((1,),), 5)

    assert refreshed_text(AT, ("models/m.sql",), (rows,), (), 0.84, None) == (
        "12:00:05  Changed: models/m.sql (0.84 s)\nm, 1 row\nid\n──\n 1\n"
    )


def test_findings_replace_rows() -> None:
    """Findings appear in place of rows in their usual form; of many changed files only some are named."""
    finding = Finding("sql-syntax", "a", "b", "c")

    assert refreshed_text(AT, tuple("abcde"), (), (finding,), 1, None) == (
        "12:00:05  Changed: a, b, c and 2 other files (1.00 s)\n[sql-syntax] a\n  why: b\n  fix: c\n"
    )
