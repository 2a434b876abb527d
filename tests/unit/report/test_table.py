"""Plain tables."""

from __future__ import annotations

from sqlstream.report.table import table_text


def test_columns_are_aligned() -> None:
    """Numbers are aligned to the right below their column names, and no line ends in spaces."""
    assert table_text(("query", "rows"), [("a", "1,234"), ("longer_name", "-")], right=(1,)) == (
        "query          rows\n───────────────────\na             1,234\nlonger_name       -"
    )


def test_a_table_without_rows_has_its_header() -> None:
    """An empty table shows its header."""
    assert table_text(("kind", "total"), []).splitlines()[0] == "kind   total"


def test_a_row_is_one_line_whatever_its_cells_hold() -> None:
    """A row is one line: line breaks and terminal codes are printed as text, and brackets are no markup."""
    lines = table_text(("a\nb",), [("x\ny\u2028z\x1b[31m",), ("[red]x[/red] :smile:",), ("größe 数",)]).split("\n")

    assert [line.strip() for line in lines] == [
        "a\\nb",
        "─" * len(lines[1].strip()),
        "x\\ny\\u2028z\\x1b[31m",
        "[red]x[/red] :smile:",
        "größe 数",
    ]


def test_no_cell_is_cut() -> None:
    """No cell is cut, however long, so that a path can be copied."""
    cells = ["/data/" + letter * 20_000 for letter in "ab数"]

    assert table_text(("first", "second", "third"), [cells]).split("\n")[2].split() == cells
